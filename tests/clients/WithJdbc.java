// JDBC: batches, cursors by fetch size, savepoints, generated keys, the metadata that tools read, COPY, time-outs, a row
// changed through its result set. Run as a source file; exits with 1 at the first thing that is not as it should be.
import java.math.BigDecimal;
import java.io.StringReader;
import java.io.StringWriter;
import java.sql.*;
import java.util.UUID;
import java.util.concurrent.Callable;

public class WithJdbc {
  static void check(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }
  static int count(Callable<ResultSet> query) throws Exception {
    int rows = 0;
    try (ResultSet result = query.call()) {
      while (result.next()) {
        for (int i = 1; i <= result.getMetaData().getColumnCount(); i++) result.getString(i);
        rows++;
      }
    }
    return rows;
  }
  static void checkCount(String what, int expected, Callable<ResultSet> query) throws Exception {
    int rows = count(query);
    check(expected < 0 ? rows >= -expected : rows == expected, what + ": " + rows + " rows");
  }

  static void statements(Connection c, Statement s) throws Exception {
    s.execute("CREATE TABLE jdbc_rows (id int8 PRIMARY KEY, b text NOT NULL DEFAULT 'q', n numeric(10,2), d timestamptz, "
        + "x int[], u uuid, f float8, k bool, y bytea, dt date)");
    PreparedStatement insert = c.prepareStatement("INSERT INTO jdbc_rows VALUES (?,?,?,?,?,?,?,?,?,?)");
    for (int i = 0; i < 50; i++) {
      insert.setLong(1, i);
      insert.setString(2, "x" + i);
      insert.setBigDecimal(3, new BigDecimal("1.25"));
      insert.setTimestamp(4, new Timestamp(i * 1000L));
      insert.setArray(5, c.createArrayOf("int4", new Integer[] {i, null}));
      insert.setObject(6, new UUID(0, i));
      insert.setDouble(7, 1.5 * i);
      insert.setBoolean(8, i % 2 == 0);
      insert.setBytes(9, new byte[] {1, (byte) i});
      insert.setDate(10, Date.valueOf("2024-02-29"));
      insert.addBatch();
    }
    check(insert.executeBatch().length == 50, "batch");
    c.setAutoCommit(false);
    PreparedStatement query = c.prepareStatement("SELECT * FROM jdbc_rows WHERE id >= ? ORDER BY id");
    query.setFetchSize(7);
    query.setLong(1, 3);
    for (int i = 0; i < 8; i++) checkCount("by fetch size", 47, query::executeQuery);  // binary from the fifth on
    ResultSet row = query.executeQuery();
    row.next();
    check(row.getBigDecimal(3).equals(new BigDecimal("1.25")) && row.getTimestamp(4).getTime() == 3000
        && ((Integer[]) row.getArray(5).getArray())[0] == 3 && row.getObject(6).equals(new UUID(0, 3))
        && row.getDouble(7) == 4.5 && !row.getBoolean(8) && row.getBytes(9)[1] == 3
        && row.getDate(10).equals(Date.valueOf("2024-02-29")), "values");
    Savepoint savepoint = c.setSavepoint();
    try {
      s.execute("INSERT INTO jdbc_rows (id) VALUES (1)");
      check(false, "a key twice");
    } catch (SQLException e) {
      check(e.getSQLState().equals("23505"), e.getSQLState());
      c.rollback(savepoint);
    }
    c.commit();
    c.setAutoCommit(true);
    PreparedStatement keyed = c.prepareStatement("INSERT INTO jdbc_rows (id, b) VALUES (1000, 'z')",
        Statement.RETURN_GENERATED_KEYS);
    keyed.executeUpdate();
    checkCount("generated keys", 1, keyed::getGeneratedKeys);
    check(query.getParameterMetaData().getParameterTypeName(1).equals("int8"), "parameter's type");
    ResultSetMetaData columns = query.getMetaData();
    check(columns.getTableName(1).equals("jdbc_rows") && columns.getColumnTypeName(3).equals("numeric")
        && columns.isNullable(2) == ResultSetMetaData.columnNoNulls, "result's metadata");
    s.setQueryTimeout(1);
    try {
      s.execute("SELECT pg_sleep(10)");
      check(false, "no time-out");
    } catch (SQLException e) {
      check(e.getSQLState().equals("57014"), e.getSQLState());
    }
    s.setQueryTimeout(0);
    ResultSet changed = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE)
        .executeQuery("SELECT id, b FROM jdbc_rows WHERE id = 5");
    changed.next();
    changed.updateString(2, "changed");
    changed.updateRow();
    checkCount("the changed row", 1, () -> s.executeQuery("SELECT 1 FROM jdbc_rows WHERE b = 'changed' AND id = 5"));
    org.postgresql.copy.CopyManager copy = c.unwrap(org.postgresql.PGConnection.class).getCopyAPI();
    check(copy.copyIn("COPY jdbc_rows (id, b) FROM STDIN", new StringReader("2000\tq\n2001\tr\n")) == 2, "COPY in");
    check(copy.copyOut("COPY jdbc_rows TO STDOUT", new StringWriter()) == 53, "COPY out");
  }

  static void metadata(DatabaseMetaData m) throws Exception {
    checkCount("tables", 1, () -> m.getTables(null, "public", "jdbc_rows", new String[] {"TABLE"}));
    checkCount("columns", 10, () -> m.getColumns(null, null, "jdbc_rows", "%"));
    checkCount("primary key", 1, () -> m.getPrimaryKeys(null, null, "jdbc_rows"));
    checkCount("indexes", 1, () -> m.getIndexInfo(null, null, "jdbc_rows", false, false));
    checkCount("imported keys", 0, () -> m.getImportedKeys(null, null, "jdbc_rows"));
    checkCount("exported keys", 0, () -> m.getExportedKeys(null, null, "jdbc_rows"));
    checkCount("schemas", -3, m::getSchemas);
    checkCount("catalogs", 1, m::getCatalogs);
    checkCount("types", -100, m::getTypeInfo);
    checkCount("privileges", 7, () -> m.getTablePrivileges(null, null, "jdbc_rows"));
    checkCount("column privileges", 70, () -> m.getColumnPrivileges(null, null, "jdbc_rows", "%"));
    checkCount("functions", 6, () -> m.getFunctions(null, null, "abs"));
    checkCount("procedures", 0, () -> m.getProcedures(null, null, "%"));
    checkCount("row identifier", 1, () -> m.getBestRowIdentifier(null, null, "jdbc_rows", 1, true));
    checkCount("version columns", 1, () -> m.getVersionColumns(null, null, "jdbc_rows"));
    count(() -> m.getUDTs(null, null, "%", null));
    count(m::getTableTypes);
  }

  public static void main(String[] args) throws Exception {
    String url = args[0].replace("postgresql://postgres@", "jdbc:postgresql://");
    try (Connection c = DriverManager.getConnection(url, "postgres", ""); Statement s = c.createStatement()) {
      statements(c, s);
      metadata(c.getMetaData());
      s.execute("DROP TABLE jdbc_rows");
    }
  }
}
