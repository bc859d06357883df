/* SPDX-License-Identifier: BSD-2-Clause */
/* The views, one or a few in each file; they are the rows of view_table. */
#ifndef VIEWS_TABLE_H
#define VIEWS_TABLE_H

#include "views/view.h"

extern const struct view_ops view_array, view_bin, view_text, view_blocks,
	view_samples, view_text_samples, view_ragged_samples, view_blob_samples,
	view_ragged_array, view_info, view_epochs, view_stack, view_slice,
	view_images, view_tiff, view_h5, view_classes, view_classes_npy,
	view_manifest_csv, view_manifest_jsonl, view_files_txt, view_file_list,
	view_metadata_csv, view_safetensors, view_zarr, view_zarr3, view_shards,
	view_shards_sized;

#endif
