/* SPDX-License-Identifier: BSD-2-Clause */
/* netCDF-3 classic files as tensors. */
#ifndef FORMATS_NETCDF_NETCDF_H
#define FORMATS_NETCDF_NETCDF_H

#include "formats/source.h"

extern const struct source_ops source_netcdf;

#endif
