// SQLSTATE codes, by Postgres's names (errcodes.txt), packed into 32 bits: 6 bits a character.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice {

enum class SqlState : uint32_t {};

constexpr SqlState MakeSqlState(std::string_view code) {
  uint32_t packed = 0;
  for (int i = 0; i < 5; i++) packed |= ((static_cast<uint32_t>(code[i]) - '0') & 0x3f) << (6 * i);
  return SqlState{packed};
}

inline std::string SqlStateText(SqlState state) {
  std::string code(5, '0');
  for (int i = 0; i < 5; i++)
    code[i] = static_cast<char>(((static_cast<uint32_t>(state) >> (6 * i)) & 0x3f) + '0');
  return code;
}

namespace sqlstate {
#define SLUICE_SQLSTATE(name, code) inline constexpr SqlState name = MakeSqlState(code)
SLUICE_SQLSTATE(kSuccess, "00000");
SLUICE_SQLSTATE(kWarning, "01000");
SLUICE_SQLSTATE(kConnectionException, "08000");
SLUICE_SQLSTATE(kUnableToEstablishConnection, "08001");
SLUICE_SQLSTATE(kConnectionDoesNotExist, "08003");
SLUICE_SQLSTATE(kConnectionFailure, "08006");
SLUICE_SQLSTATE(kProtocolViolation, "08P01");
SLUICE_SQLSTATE(kFeatureNotSupported, "0A000");
SLUICE_SQLSTATE(kCardinalityViolation, "21000");
SLUICE_SQLSTATE(kDataException, "22000");
SLUICE_SQLSTATE(kStringDataRightTruncation, "22001");
SLUICE_SQLSTATE(kNumericValueOutOfRange, "22003");
SLUICE_SQLSTATE(kInvalidDatetimeFormat, "22007");
SLUICE_SQLSTATE(kDatetimeFieldOverflow, "22008");
SLUICE_SQLSTATE(kDivisionByZero, "22012");
SLUICE_SQLSTATE(kIntervalFieldOverflow, "22015");
SLUICE_SQLSTATE(kInvalidRowCountInLimitClause, "2201W");
SLUICE_SQLSTATE(kInvalidRowCountInResultOffsetClause, "2201X");
SLUICE_SQLSTATE(kInvalidRegularExpression, "2201B");
SLUICE_SQLSTATE(kInvalidArgumentForLog, "2201E");
SLUICE_SQLSTATE(kInvalidArgumentForPower, "2201F");
SLUICE_SQLSTATE(kCharacterNotInRepertoire, "22021");
SLUICE_SQLSTATE(kInvalidParameterValue, "22023");
SLUICE_SQLSTATE(kInvalidTextRepresentation, "22P02");
SLUICE_SQLSTATE(kInvalidBinaryRepresentation, "22P03");
SLUICE_SQLSTATE(kBadCopyFileFormat, "22P04");
SLUICE_SQLSTATE(kSubstringError, "22011");
SLUICE_SQLSTATE(kInvalidEscapeSequence, "22025");
SLUICE_SQLSTATE(kActiveSqlTransaction, "25001");
SLUICE_SQLSTATE(kReadOnlySqlTransaction, "25006");
SLUICE_SQLSTATE(kNoActiveSqlTransaction, "25P01");
SLUICE_SQLSTATE(kInFailedSqlTransaction, "25P02");
SLUICE_SQLSTATE(kInvalidSqlStatementName, "26000");
SLUICE_SQLSTATE(kInvalidAuthorizationSpecification, "28000");
SLUICE_SQLSTATE(kInvalidPassword, "28P01");
SLUICE_SQLSTATE(kDependentObjectsStillExist, "2BP01");
SLUICE_SQLSTATE(kInvalidCursorName, "34000");
SLUICE_SQLSTATE(kInvalidCatalogName, "3D000");
SLUICE_SQLSTATE(kInvalidSchemaName, "3F000");
SLUICE_SQLSTATE(kSerializationFailure, "40001");
SLUICE_SQLSTATE(kDeadlockDetected, "40P01");
SLUICE_SQLSTATE(kSyntaxErrorOrAccessRuleViolation, "42000");
SLUICE_SQLSTATE(kSyntaxError, "42601");
SLUICE_SQLSTATE(kInsufficientPrivilege, "42501");
SLUICE_SQLSTATE(kCannotCoerce, "42846");
SLUICE_SQLSTATE(kGroupingError, "42803");
SLUICE_SQLSTATE(kWindowingError, "42P20");
SLUICE_SQLSTATE(kInvalidRecursion, "42P19");
SLUICE_SQLSTATE(kInvalidForeignKey, "42830");
SLUICE_SQLSTATE(kInvalidName, "42602");
SLUICE_SQLSTATE(kNameTooLong, "42622");
SLUICE_SQLSTATE(kDatatypeMismatch, "42804");
SLUICE_SQLSTATE(kIndeterminateDatatype, "42P18");
SLUICE_SQLSTATE(kCollationMismatch, "42P21");
SLUICE_SQLSTATE(kIndeterminateCollation, "42P22");
SLUICE_SQLSTATE(kWrongObjectType, "42809");
SLUICE_SQLSTATE(kUndefinedColumn, "42703");
SLUICE_SQLSTATE(kUndefinedFunction, "42883");
SLUICE_SQLSTATE(kUndefinedTable, "42P01");
SLUICE_SQLSTATE(kUndefinedParameter, "42P02");
SLUICE_SQLSTATE(kUndefinedObject, "42704");
SLUICE_SQLSTATE(kDuplicateColumn, "42701");
SLUICE_SQLSTATE(kDuplicateCursor, "42P03");
SLUICE_SQLSTATE(kDuplicateDatabase, "42P04");
SLUICE_SQLSTATE(kDuplicatePreparedStatement, "42P05");
SLUICE_SQLSTATE(kDuplicateSchema, "42P06");
SLUICE_SQLSTATE(kDuplicateTable, "42P07");
SLUICE_SQLSTATE(kDuplicateAlias, "42712");
SLUICE_SQLSTATE(kDuplicateObject, "42710");
SLUICE_SQLSTATE(kAmbiguousColumn, "42702");
SLUICE_SQLSTATE(kAmbiguousFunction, "42725");
SLUICE_SQLSTATE(kInvalidColumnReference, "42P10");
SLUICE_SQLSTATE(kInvalidColumnDefinition, "42611");
SLUICE_SQLSTATE(kInvalidTableDefinition, "42P16");
SLUICE_SQLSTATE(kInvalidObjectDefinition, "42P17");
SLUICE_SQLSTATE(kInsufficientResources, "53000");
SLUICE_SQLSTATE(kDiskFull, "53100");
SLUICE_SQLSTATE(kOutOfMemory, "53200");
SLUICE_SQLSTATE(kTooManyConnections, "53300");
SLUICE_SQLSTATE(kConfigurationLimitExceeded, "53400");
SLUICE_SQLSTATE(kProgramLimitExceeded, "54000");
SLUICE_SQLSTATE(kStatementTooComplex, "54001");
SLUICE_SQLSTATE(kObjectNotInPrerequisiteState, "55000");
SLUICE_SQLSTATE(kObjectInUse, "55006");
SLUICE_SQLSTATE(kCantChangeRuntimeParam, "55P02");
SLUICE_SQLSTATE(kLockNotAvailable, "55P03");
SLUICE_SQLSTATE(kQueryCanceled, "57014");
SLUICE_SQLSTATE(kAdminShutdown, "57P01");
SLUICE_SQLSTATE(kCrashShutdown, "57P02");
SLUICE_SQLSTATE(kCannotConnectNow, "57P03");
SLUICE_SQLSTATE(kIdleSessionTimeout, "57P05");
SLUICE_SQLSTATE(kIoError, "58030");
SLUICE_SQLSTATE(kConfigFileError, "F0000");
SLUICE_SQLSTATE(kFdwError, "HV000");
SLUICE_SQLSTATE(kFdwInvalidOptionName, "HV00D");
SLUICE_SQLSTATE(kFdwUnableToEstablishConnection, "HV00N");
SLUICE_SQLSTATE(kInternalError, "XX000");
SLUICE_SQLSTATE(kDataCorrupted, "XX001");
#undef SLUICE_SQLSTATE
}  // namespace sqlstate

}  // namespace sluice
