// Oids of Postgres's built-in types and collations (pg_type.dat, pg_collation.dat): the same on
// every Postgres, so they are constants here. Types that users or extensions made have oids that
// differ from shard to shard; Sluice gives them its own, from kFirstUserOid (catalog/).
#pragma once

#include <cstdint>

namespace sluice {

using Oid = uint32_t;

inline constexpr Oid kInvalidOid = 0;
inline constexpr Oid kFirstUserOid = 16384;
inline constexpr Oid kPublicSchemaOid = 2200;

inline constexpr Oid kBoolOid = 16, kByteaOid = 17, kCharOid = 18, kNameOid = 19, kInt8Oid = 20,
                     kInt2Oid = 21, kInt4Oid = 23, kRegprocOid = 24, kTextOid = 25, kOidOid = 26,
                     kXidOid = 28, kCidOid = 29, kJsonOid = 114, kXmlOid = 142, kPointOid = 600,
                     kFloat4Oid = 700, kFloat8Oid = 701, kUnknownOid = 705, kMoneyOid = 790,
                     kInetOid = 869, kCidrOid = 650, kBpcharOid = 1042, kVarcharOid = 1043,
                     kDateOid = 1082, kTimeOid = 1083, kTimestampOid = 1114, kTimestamptzOid = 1184,
                     kIntervalOid = 1186, kTimetzOid = 1266, kBitOid = 1560, kVarbitOid = 1562,
                     kNumericOid = 1700, kRegclassOid = 2205, kRegtypeOid = 2206, kRecordOid = 2249,
                     kCstringOid = 2275, kAnyOid = 2276, kAnyarrayOid = 2277, kVoidOid = 2278,
                     kAnyelementOid = 2283, kAnynonarrayOid = 2776, kUuidOid = 2950,
                     kAnyenumOid = 3500, kJsonbOid = 3802, kAnyrangeOid = 3831,
                     kAnycompatibleOid = 5077, kAnycompatiblearrayOid = 5078,
                     kAnycompatiblenonarrayOid = 5079;

inline constexpr Oid kBoolArrayOid = 1000, kByteaArrayOid = 1001, kNameArrayOid = 1003,
                     kInt2ArrayOid = 1005, kInt4ArrayOid = 1007, kTextArrayOid = 1009,
                     kBpcharArrayOid = 1014, kVarcharArrayOid = 1015, kInt8ArrayOid = 1016,
                     kFloat4ArrayOid = 1021, kFloat8ArrayOid = 1022, kOidArrayOid = 1028,
                     kTimestampArrayOid = 1115, kDateArrayOid = 1182, kTimeArrayOid = 1183,
                     kTimestamptzArrayOid = 1185, kIntervalArrayOid = 1187, kNumericArrayOid = 1231,
                     kUuidArrayOid = 2951, kJsonArrayOid = 199, kJsonbArrayOid = 3807;

inline constexpr Oid kDefaultCollationOid = 100, kCCollationOid = 950, kPosixCollationOid = 951;

}  // namespace sluice
