// Functions whose answer is the session's or the server's, not the data's. pg_backend_pid(),
// current_setting(), version() and their like are evaluated once a statement, before it is planned,
// and stand in the query as constants. Those that act for each row (pg_terminate_backend, pg_sleep)
// are kernels, see server_kernels.h.
#pragma once

#include <string>
#include <vector>

#include "common/arena.h"
#include "parser/query.h"

namespace sluice {

class Settings;

struct SessionFunctionContext {
  Settings* settings;
  std::vector<std::string> search_path;
  std::string user, session_user, database;
  Arena* arena;
  bool in_transaction = false;  // SET LOCAL has a meaning
};

// Whether a statement that a shard is to run names anything whose answer there would be the shard's
// own, or that would act there: a coarse look at the words, which errs to yes.
bool DependsOnSession(std::string_view text);

// Whether there is any such call.
bool HasSessionFunctions(const Query& query);
// Calls them and puts constants in their places. Once an execution: some have effects.
void FoldSessionFunctions(Query* query, const SessionFunctionContext& context);

}  // namespace sluice
