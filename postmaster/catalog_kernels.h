// Functions over the system catalogs: format_type, pg_get_expr, pg_table_is_visible,
// has_table_privilege and their kin, with the eyes of the session of this process.
#pragma once

#include <span>

#include "types/kernel.h"

namespace sluice {

std::span<const Kernel> CatalogKernels();          // catalog_kernels.cc
std::span<const Kernel> TextKernelsWithCatalog();  // text_kernels.cc
std::span<const Kernel> DefinitionKernels();       // definition_kernels.cc: pg_get_…def

}  // namespace sluice
