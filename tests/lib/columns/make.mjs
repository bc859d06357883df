// SPDX-License-Identifier: BSD-2-Clause
// Writes the files beside it with apache-arrow (JavaScript) and nodejs-polars, from npm:
//   npm install apache-arrow nodejs-polars && node make.mjs
// The values are those that test_arrow.py and test_parquet.py compute again.
import * as A from 'apache-arrow';
import pl from 'nodejs-polars';
import fs from 'fs';

const types = {
	i1: A.Int8, u1: A.Uint8, i2: A.Int16, u2: A.Uint16, i4: A.Int32, u4: A.Uint32,
	f4: A.Float32, f8: A.Float64};
const required = (name, type) => new A.Field(name, type, false);

function batch(schema, lo, hi) {
	const rows = Array.from({length: hi - lo}, (_, i) => lo + i);
	const of = (type, f) => A.vectorFromArray(rows.map(f), type);
	const columns = {};
	for (const [name, type] of Object.entries(types))
		columns[name] = of(new type, i => i % 100);
	columns.i8 = of(new A.Int64, i => BigInt(i) * -10000000000n);
	columns.u8 = of(new A.Uint64, i => BigInt(i) * 10000000000n);
	columns.f2 = of(new A.Float16, i => i / 2);
	columns.bool = of(new A.Bool, i => i % 3 === 0);
	columns.bools = of(new A.FixedSizeList(3, required('item', new A.Bool)),
		i => [i % 2 === 0, i % 3 === 0, i % 5 === 0]);
	columns.vector = of(new A.FixedSizeList(4, required('item', new A.Float32)),
		i => [i, i + 0.25, i + 0.5, -i]);
	columns.matrix = of(new A.FixedSizeList(2, required('rows',
		new A.FixedSizeList(3, required('item', new A.Int16)))),
		i => [[i, 1, 2], [3, 4, -i]]);
	columns.text = of(new A.Utf8, i => i % 7 ? 'row ' + i + ' \u00e9' : '');
	columns.large = of(new A.LargeUtf8, i => 'line\n' + i);
	columns.bytes = of(new A.Binary, i => new Uint8Array([i & 255, 0, 10]));
	columns.fixed = of(new A.FixedSizeBinary(3),
		i => new Uint8Array([i & 255, 1, 2]));
	columns.day = of(new A.DateDay, i => new Date(86400000 * i));
	columns.time = of(new A.TimestampMicrosecond, i => 1700000000000 + i);
	columns.nulls = of(new A.Int16, i => i % 2 ? i : null);
	columns.ragged = of(new A.List(required('item', new A.Int8)),
		i => Array(i % 3).fill(i % 100));
	return new A.Table(columns);
}

const parts = [[0, 5], [5, 70], [70, 100]].map(([lo, hi]) => batch(null, lo, hi));
fs.writeFileSync('batches.arrow', A.tableToIPC(parts[0].concat(parts[1], parts[2]), 'file'));
fs.writeFileSync('batches.arrows', A.tableToIPC(parts[0].concat(parts[1], parts[2]), 'stream'));
fs.writeFileSync('one.arrow', A.tableToIPC(batch(null, 0, 100), 'file'));
fs.writeFileSync('dictionary.arrow', A.tableToIPC(new A.Table({
	kind: A.vectorFromArray(['a', 'b', 'a'], new A.Dictionary(new A.Utf8, new A.Int8)),
	n: A.vectorFromArray([1, 2, 3], new A.Int32)}), 'file'));

const n = 100, rows = Array.from({length: n}, (_, i) => i);
const df = pl.DataFrame([
	pl.Series('i4', rows.map(i => i * 3 - 7), pl.Int32),
	pl.Series('i8', rows.map(i => i * 3 - 7), pl.Int64),
	pl.Series('f4', rows.map(i => i / 4), pl.Float32),
	pl.Series('f8', rows.map(i => i / 4), pl.Float64),
	pl.Series('few', rows.map(i => i % 3), pl.Int32),
	pl.Series('bool', rows.map(i => i % 3 === 0), pl.Bool),
	pl.Series('text', rows.map(i => i % 7 ? 'row ' + i + ' \u00e9 and more' : ''), pl.Utf8),
	pl.Series('nulls', rows.map(i => i % 2 ? i : null), pl.Int32)]);
for (const c of ['uncompressed', 'lz4', 'zstd'])
	df.writeIPC(`${c}.arrow`, {compression: c});
for (const c of ['uncompressed', 'snappy', 'gzip', 'zstd', 'lz4'])
	df.writeParquet(`${c}.parquet`, {compression: c});

// Row groups of 30 rows, small pages, both versions of data pages; by arrow-rs.
const {Table, writeParquet, WriterPropertiesBuilder, WriterVersion, Compression, Encoding} =
	await import('parquet-wasm/node');
const columns = {...types, i8: A.Int64, u8: A.Uint64};
const plain = new A.Table({
	...Object.fromEntries(Object.entries(columns).map(([name, type]) => [name,
		A.vectorFromArray(rows.map(i => /8/.test(name) && name !== 'f8' ? BigInt(i) : i),
			new type)])),
	negative: A.vectorFromArray(rows.map(i => -i), new A.Int8),
	bool: A.vectorFromArray(rows.map(i => i % 3 === 0), new A.Bool),
	text: A.vectorFromArray(rows.map(i => i % 7 ? 'row ' + i + ' \u00e9' : ''), new A.Utf8),
	few: A.vectorFromArray(rows.map(i => 'abc'[i % 3]), new A.Utf8),
	fixed: A.vectorFromArray(rows.map(i => new Uint8Array([i & 255, 1, 2])),
		new A.FixedSizeBinary(3)),
	bytes: A.vectorFromArray(rows.map(i => new Uint8Array([i & 255, 0, 10])), new A.Binary),
	day: A.vectorFromArray(rows.map(i => new Date(86400000 * i)), new A.DateDay),
	ragged: A.vectorFromArray(rows.map(i => Array(i % 3).fill(i)),
		new A.List(required('item', new A.Int8)))});
for (const [name, version, dictionary] of [
	['pages1', WriterVersion.V1, true], ['plain1', WriterVersion.V1, false],
	['pages2', WriterVersion.V2, true], ['delta2', WriterVersion.V2, false]]) {
	let p = new WriterPropertiesBuilder().setWriterVersion(version)
		.setDictionaryEnabled(dictionary).setMaxRowGroupSize(30)
		.setDataPageSizeLimit(64).setWriteBatchSize(8)
		.setCompression(Compression.SNAPPY);
	fs.writeFileSync(name + '.parquet',
		writeParquet(Table.fromIPCStream(A.tableToIPC(plain, 'stream')), p.build()));
}

// Encodings that no default has, steps that wrap around, a dictionary given up midway.
const many = Array.from({length: 1000}, (_, i) => i);
const golden = i => BigInt.asIntN(64, BigInt(i) * 0x9E3779B97F4A7C15n);
const wild = new A.Table({
	d4: A.vectorFromArray(many.map(i => Number(BigInt.asIntN(32, golden(i)))), new A.Int32),
	d8: A.vectorFromArray(many.map(golden), new A.Int64),
	slow: A.vectorFromArray(many.map(i => BigInt(i >> 3)), new A.Int64),
	u4: A.vectorFromArray(many.map(i => Number(BigInt.asUintN(32, golden(i)))), new A.Uint32),
	i1: A.vectorFromArray(many.map(i => i % 256 - 128), new A.Int8),
	s4: A.vectorFromArray(many.map(i => Math.fround(i / 7)), new A.Float32),
	s8: A.vectorFromArray(many.map(i => i / 7), new A.Float64),
	length: A.vectorFromArray(many.map(i => 'x'.repeat(i % 50) + i), new A.Utf8),
	prefix: A.vectorFromArray(many.map(i => 'row ' + (i * i)), new A.Utf8),
	mixed: A.vectorFromArray(many.map(i => i < 400 ? i % 5 : i * 17), new A.Int32),
	bool: A.vectorFromArray(many.map(i => i % 3 === 0), new A.Bool)});
for (const [name, version] of [['wild1', WriterVersion.V1], ['wild2', WriterVersion.V2]]) {
	let p = new WriterPropertiesBuilder().setWriterVersion(version)
		.setDictionaryEnabled(false).setColumnDictionaryEnabled('mixed', true)
		.setMaxRowGroupSize(600)
		.setDataPageSizeLimit(800).setDictionaryPageSizeLimit(300).setWriteBatchSize(16)
		.setCompression(Compression.ZSTD);
	for (const c of ['d4', 'd8', 'slow', 'u4', 'i1'])
		p = p.setColumnEncoding(c, Encoding.DELTA_BINARY_PACKED);
	for (const c of ['s4', 's8'])
		p = p.setColumnEncoding(c, Encoding.BYTE_STREAM_SPLIT);
	p = p.setColumnEncoding('length', Encoding.DELTA_LENGTH_BYTE_ARRAY)
		.setColumnEncoding('prefix', Encoding.DELTA_BYTE_ARRAY)
		.setColumnEncoding('bool', version === WriterVersion.V2 ? Encoding.RLE : Encoding.PLAIN);
	fs.writeFileSync(name + '.parquet',
		writeParquet(Table.fromIPCStream(A.tableToIPC(wild, 'stream')), p.build()));
}
