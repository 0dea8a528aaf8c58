// Tests only: a real Postgres of their own, and a Catalog made from what it has.
#pragma once

#include <fstream>
#include <libpq-fe.h>
#include <stdlib.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "catalog/catalog.h"

namespace sluice {

// A cluster under /tmp, run by the user postgres if we are root, reached by its unix socket only;
// gone with the object.
class TestPostgres {
 public:
  TestPostgres() {
    char directory[] = "/tmp/sluice_parser_XXXXXX";
    if (mkdtemp(directory) == nullptr) abort();
    directory_ = directory;
    if (geteuid() == 0) Must("chown postgres " + directory_);
    AsPostgres("initdb -D " + directory_ +
               "/data -A trust -U postgres -E UTF8 --locale=C.UTF-8 -N");
    std::ofstream(directory_ + "/data/postgresql.conf", std::ios::app)
        << "fsync = off\nlisten_addresses = ''\nport = 6600\n"
        << "unix_socket_directories = '" << directory_ << "'\n";
    AsPostgres("pg_ctl -w -D " + directory_ + "/data -l " + directory_ + "/log start");
    connection_ =
        PQconnectdb(("host=" + directory_ + " port=6600 user=postgres dbname=postgres").c_str());
    if (PQstatus(connection_) != CONNECTION_OK) abort();
  }
  ~TestPostgres() {
    PQfinish(connection_);
    AsPostgres("pg_ctl -w -D " + directory_ + "/data stop -m immediate");
    Must("rm -rf " + directory_);
  }
  PGconn* connection() const { return connection_; }

  std::vector<std::vector<std::string>> Rows(const std::string& sql) {
    PGresult* result = PQexec(connection_, sql.c_str());
    if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK) {
      fprintf(stderr, "%s: %s\n", sql.c_str(), PQerrorMessage(connection_));
      abort();
    }
    std::vector<std::vector<std::string>> rows(static_cast<size_t>(PQntuples(result)));
    for (int r = 0; r < PQntuples(result); r++)
      for (int c = 0; c < PQnfields(result); c++)
        rows[static_cast<size_t>(r)].push_back(PQgetvalue(result, r, c));
    PQclear(result);
    return rows;
  }

  // Tables, views and enums of schema public, under the very oids that this Postgres gives them.
  Catalog MakeCatalog() {
    Catalog catalog;
    for (auto& row : Rows("SELECT c.oid, relname, relkind, CASE relkind WHEN 'v' THEN "
                          "pg_get_viewdef(c.oid) ELSE '' END FROM pg_class c WHERE relnamespace = "
                          "'public'::regnamespace AND relkind IN ('r', 'v') ORDER BY c.oid")) {
      Relation relation{};
      relation.oid = static_cast<Oid>(std::stoul(row[0]));
      relation.schema = "public";
      relation.name = row[1];
      relation.kind = row[2] == "v" ? RelationKind::kView : RelationKind::kForeignTable;
      relation.view_sql = row[3];
      for (auto& column : Rows("SELECT attname, atttypid, atttypmod, attcollation, attnotnull FROM "
                               "pg_attribute WHERE "
                               "attnum > 0 AND attrelid = " +
                               row[0] + " ORDER BY attnum")) {
        ColumnInfo info;
        info.name = column[0];
        info.type = static_cast<Oid>(std::stoul(column[1]));
        info.typmod = std::stoi(column[2]);
        info.collation = static_cast<Oid>(std::stoul(column[3]));
        info.not_null = column[4] == "t";
        relation.columns.push_back(info);
      }
      for (auto& key : Rows("SELECT unnest(conkey) - 1 FROM pg_constraint WHERE contype = 'p' AND "
                            "conrelid = " +
                            row[0]))
        relation.primary_key.push_back(std::stoi(key[0]));
      catalog.relations[relation.oid] = relation;
    }
    for (auto& row : Rows("SELECT oid, typname, typarray FROM pg_type WHERE typtype = 'e'")) {
      UserType type{};
      type.schema = "public";
      type.name = row[1];
      type.info.oid = static_cast<Oid>(std::stoul(row[0]));
      type.info.length = 4;
      type.info.kind = 'e';
      type.info.category = 'E';
      type.info.array = static_cast<Oid>(std::stoul(row[2]));
      for (auto& label : Rows("SELECT enumlabel FROM pg_enum WHERE enumtypid = " + row[0] +
                              " ORDER BY enumsortorder"))
        type.enum_labels.push_back(label[0]);
      UserType array{};
      array.schema = "public";
      array.name = "_" + row[1];
      array.info.oid = type.info.array;
      array.info.length = -1;
      array.info.kind = 'b';
      array.info.category = 'A';
      array.info.element = type.info.oid;
      catalog.types[type.info.oid] = type;
      catalog.types[array.info.oid] = array;
    }
    catalog.RegisterObjects();
    return catalog;
  }

 private:
  static void Must(const std::string& command) {
    if (system(command.c_str()) != 0) {
      fprintf(stderr, "failed: %s\n", command.c_str());
      abort();
    }
  }
  static void AsPostgres(const std::string& command) {
    Must((geteuid() == 0 ? "cd /tmp && runuser -u postgres -- " : "") +
         ("/usr/lib/postgresql/15/bin/" + command + " > /dev/null"));
  }

  std::string directory_;
  PGconn* connection_ = nullptr;
};

}  // namespace sluice
