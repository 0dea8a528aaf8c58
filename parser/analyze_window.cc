// Window functions: OVER and WINDOW, what may stand in them, and where they may stand.
#include "parser/analyzer.h"
#include "parser/walk.h"

namespace sluice {
namespace {

// Postgres's FRAMEOPTION_ bits.
constexpr int kFrameRange = 0x2, kFrameGroups = 0x8;
constexpr int kFrameDefaults = 0x2 | 0x20 | 0x400;  // RANGE UNBOUNDED PRECEDING AND CURRENT ROW
constexpr int kFrameOffsets = 0x800 | 0x1000 | 0x2000 | 0x4000;

const Expr* FindWindow(const Expr& expr) {
  if (expr.kind == ExprKind::kWindow) return &expr;
  const Expr* found = nullptr;
  ForEachChild(expr, [&](const Expr& child) {
    if (found == nullptr) found = FindWindow(child);
  });
  return found;
}

bool IsAllowedIn(Clause clause) {
  return clause == Clause::kSelectTarget || clause == Clause::kOrderBy ||
         clause == Clause::kDistinctOn;
}

int FindDefinition(ParseState& p, std::string_view name, size_t before, int location) {
  for (size_t i = 0; i < before; i++)
    if (HasText(p.window_defs[i]->name) && name == p.window_defs[i]->name)
      return static_cast<int>(i);
  ThrowAt(p, location, sqlstate::kUndefinedObject, "window \"{}\" does not exist", name);
}

// A reference is a WindowDef with a name and nothing else that is written.
bool IsReference(const PgQuery__WindowDef& def) {
  return HasText(def.name);
}

// What a RANGE offset is cast to, by the type of the key: its type in pg_amproc's in_range
// function. kInvalidOid: there is none.
Oid RangeOffsetType(Oid key, Oid offset) {
  bool integer = offset == kInt2Oid || offset == kInt4Oid || offset == kInt8Oid;
  switch (key) {
    case kInt2Oid:
    case kInt4Oid:
    case kInt8Oid:
      return integer ? offset : offset == kUnknownOid ? kInt8Oid : kInvalidOid;
    case kFloat4Oid:
    case kFloat8Oid:
      return kFloat8Oid;
    case kNumericOid:
      return kNumericOid;
    case kDateOid:
    case kTimeOid:
    case kTimestampOid:
    case kTimestamptzOid:
    case kIntervalOid:
      return kIntervalOid;
    default:
      return kInvalidOid;
  }
}

Expr* CoerceRangeOffset(ParseState& p, Expr* offset, const WindowClause& window) {
  Oid key = p.targets[static_cast<size_t>(window.order_by[0].target)].expr->type;
  constexpr std::string_view kNotSupported =
      "RANGE with offset PRECEDING/FOLLOWING is not supported for column type ";
  if (RangeOffsetType(key, kUnknownOid) == kInvalidOid)
    ThrowAt(p, ExprLocation(*offset), sqlstate::kFeatureNotSupported, "{}{}", kNotSupported,
            TypeText(key));
  Oid type = RangeOffsetType(key, offset->type);
  if (type == kInvalidOid || !CanCoerce(offset->type, type, CoercionContext::kImplicit)) {
    Error e = MakeError(sqlstate::kFeatureNotSupported, "{}{} and offset type {}", kNotSupported,
                        TypeText(key), TypeText(offset->type));
    e.Hint("Cast the offset value to an appropriate type.");
    throw QueryError(e.At(ErrorPosition(p, ExprLocation(*offset))));
  }
  return CoerceType(p, offset, type, -1, CoercionContext::kImplicit, false, -1);
}

const Expr* TransformOffset(ParseState& p, const RawNode* node, int frame_options,
                            const WindowClause& window) {
  if (node == nullptr) return nullptr;
  bool range = (frame_options & kFrameRange) != 0;
  const char* mode = range ? "RANGE" : (frame_options & kFrameGroups) != 0 ? "GROUPS" : "ROWS";
  ClauseScope scope(p, Clause::kWindowFrame);
  Expr* expr = TransformExpr(p, node);
  expr = range ? CoerceRangeOffset(p, expr, window) : CoerceToSpecific(p, expr, kInt8Oid, mode);
  if (ContainsColumn(*expr))
    ThrowAt(p, ExprLocation(*expr), sqlstate::kInvalidColumnReference,
            "argument of {} must not contain variables", mode);
  return expr;
}

void CheckFrame(ParseState& p, const PgQuery__WindowDef& def, const WindowClause& window) {
  int location = p.Location(def.location);
  if ((def.frame_options & kFrameRange) != 0 && (def.frame_options & kFrameOffsets) != 0) {
    if (window.order_by.size() != 1)
      ThrowAt(p, location, sqlstate::kWindowingError,
              "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column");
  }
  if ((def.frame_options & kFrameGroups) != 0 && window.order_by.empty())
    ThrowAt(p, location, sqlstate::kWindowingError, "GROUPS mode requires an ORDER BY clause");
}

// OVER (w …) takes the partitions of w, and its order if it has none itself.
void CopyFrom(ParseState& p, const PgQuery__WindowDef& def, const PgQuery__WindowDef& from_def,
              const WindowClause& from, WindowClause* window) {
  int location = p.Location(def.location);
  std::string_view name = def.refname;
  if (!window->partition_by.empty() || def.n_partition_clause > 0)
    ThrowAt(p, location, sqlstate::kWindowingError,
            "cannot override PARTITION BY clause of window \"{}\"", name);
  if (!window->order_by.empty() && !from.order_by.empty())
    ThrowAt(p, location, sqlstate::kWindowingError,
            "cannot override ORDER BY clause of window \"{}\"", name);
  if (from_def.frame_options != kFrameDefaults) {
    Error e = MakeError(sqlstate::kWindowingError,
                        "cannot copy window \"{}\" because it has a frame clause", name);
    if (!HasText(def.name) && window->order_by.empty() && def.frame_options == kFrameDefaults)
      e.Hint("Omit the parentheses in this OVER clause.");
    throw QueryError(e.At(ErrorPosition(p, location)));
  }
  window->partition_by = from.partition_by;
  if (window->order_by.empty()) window->order_by = from.order_by;
}

bool SameKeys(std::span<const SortKey> a, std::span<const SortKey> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const SortKey& x, const SortKey& y) {
    return x.target == y.target && x.less_operator == y.less_operator &&
           x.nulls_first == y.nulls_first;
  });
}

bool SameWindow(const WindowClause& a, const WindowClause& b) {
  return std::equal(a.partition_by.begin(), a.partition_by.end(), b.partition_by.begin(),
                    b.partition_by.end()) &&
         SameKeys(a.order_by, b.order_by) && a.frame_options == b.frame_options &&
         EqualExprs(a.start_offset, b.start_offset) && EqualExprs(a.end_offset, b.end_offset);
}

}  // namespace

void ThrowWindowNotAllowed(ParseState& p, Clause clause, int location) {
  switch (clause) {
    case Clause::kJoinOn:
    case Clause::kJoinUsing:
      ThrowAt(p, location, sqlstate::kWindowingError,
              "window functions are not allowed in JOIN conditions");
    case Clause::kFromFunction:
      ThrowAt(p, location, sqlstate::kWindowingError,
              "window functions are not allowed in functions in FROM");
    case Clause::kWindowPartition:
    case Clause::kWindowOrder:
    case Clause::kWindowFrame:
      ThrowAt(p, location, sqlstate::kWindowingError,
              "window functions are not allowed in window definitions");
    default:
      ThrowAt(p, location, sqlstate::kWindowingError, "window functions are not allowed in {}",
              ClauseName(clause));
  }
}

Expr* TransformWindowCall(ParseState& p, Expr* window, const PgQuery__FuncCall& call) {
  const ProcInfo& proc = *FindProc(window->function);
  int location = window->location;
  window->kind = ExprKind::kWindow;
  window->star = call.agg_star;
  if (call.agg_distinct)
    ThrowAt(p, location, sqlstate::kFeatureNotSupported,
            "DISTINCT is not implemented for window functions");
  if (proc.kind == 'a' && call.n_args == 0 && !call.agg_star)
    ThrowAt(p, location, sqlstate::kWrongObjectType,
            "{}(*) must be used to call a parameterless aggregate function", proc.name);
  if (call.n_agg_order > 0)
    ThrowAt(p, location, sqlstate::kFeatureNotSupported,
            "aggregate ORDER BY is not implemented for window functions");
  if (proc.kind == 'w' && call.agg_filter != nullptr)
    ThrowAt(p, location, sqlstate::kFeatureNotSupported,
            "FILTER is not implemented for non-aggregate window functions");
  if (call.agg_filter != nullptr)
    window->filter = TransformWhere(p, call.agg_filter, Clause::kFilter, "FILTER");
  const Expr* nested = nullptr;
  ForEachChild(*window, [&](const Expr& child) {
    if (nested == nullptr) nested = FindWindow(child);
  });
  if (nested != nullptr)
    ThrowAt(p, nested->location, sqlstate::kWindowingError,
            "window function calls cannot be nested");
  if (!IsAllowedIn(p.clause)) ThrowWindowNotAllowed(p, p.clause, location);

  if (IsReference(*call.over)) {
    window->param =
        FindDefinition(p, call.over->name, p.window_defs.size(), p.Location(call.over->location));
  } else {
    window->param = static_cast<int>(p.window_defs.size());
    p.window_defs.push_back(call.over);
  }
  p.window_calls.push_back(window);
  return window;
}

void TransformWindows(ParseState& p, Query* query) {
  std::vector<WindowClause> windows, distinct;
  std::vector<int> place;
  for (size_t i = 0; i < p.window_defs.size(); i++) {
    const PgQuery__WindowDef& def = *p.window_defs[i];
    int location = p.Location(def.location);
    if (HasText(def.name))
      for (size_t j = 0; j < i; j++)
        if (HasText(p.window_defs[j]->name) && std::string_view(def.name) == p.window_defs[j]->name)
          ThrowAt(p, location, sqlstate::kWindowingError, "window \"{}\" is already defined",
                  def.name);
    int from = HasText(def.refname) ? FindDefinition(p, def.refname, i, location) : -1;
    WindowClause window{};
    window.order_by = p.a.arena->CopyArray(
        TransformOrderBy(p, def.order_clause, def.n_order_clause, Clause::kWindowOrder));
    window.partition_by =
        p.a.arena->CopyArray(TransformPartitionBy(p, def.partition_clause, def.n_partition_clause));
    if (from >= 0)
      CopyFrom(p, def, *p.window_defs[static_cast<size_t>(from)],
               windows[static_cast<size_t>(from)], &window);
    window.frame_options = def.frame_options;
    CheckFrame(p, def, window);
    window.start_offset = TransformOffset(p, def.start_offset, def.frame_options, window);
    window.end_offset = TransformOffset(p, def.end_offset, def.frame_options, window);
    windows.push_back(window);
    // Several OVER clauses that say the same are one window.
    auto same = std::find_if(distinct.begin(), distinct.end(),
                             [&](const WindowClause& other) { return SameWindow(other, window); });
    place.push_back(static_cast<int>(same - distinct.begin()));
    if (same == distinct.end()) distinct.push_back(window);
  }
  for (Expr* call : p.window_calls) call->param = place[static_cast<size_t>(call->param)];
  // A WINDOW that nobody uses is checked and forgotten.
  if (!p.window_calls.empty()) query->windows = p.a.arena->CopyArray(distinct);
}

}  // namespace sluice
