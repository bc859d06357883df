// SPDX-License-Identifier: BSD-2-Clause
// Writes nested*.* and brotli.parquet beside it with apache-arrow (JavaScript),
// nodejs-polars, DuckDB and parquet-wasm (arrow-rs), from npm:
//   npm install apache-arrow nodejs-polars nodejs-polars-linux-x64-gnu @duckdb/node-api \
//       parquet-wasm && node nested.mjs
// The values are those that test_nested.py computes again.
import * as A from 'apache-arrow';
import duckdb from '@duckdb/node-api';
import pl from 'nodejs-polars';
import fs from 'fs';

const N = 60, ALL = Array.from({length: N}, (_, i) => i);
const range = (n, f) => Array.from({length: n}, (_, k) => f(k));
const of = {
	kind: i => 'xyz'[i % 3],
	code: i => i % 4 * 1000,
	blob: i => new Uint8Array([i % 2, 255]),
	maybe: i => i % 5 ? 'm' + i % 2 : null,
	tags: i => i % 9 == 4 ? null : range(i % 4, k => k == 2 ? null : `t${i}-${k}`),
	grid: i => range(i % 3, k => Array(k + i % 2).fill(i)),
	st: i => ({a: i, b: i % 6 ? 'q\u00e9"' + i : null, c: Array(i % 2).fill(i / 2)}),
	pairs: i => range(i % 3, k => ({p: i, q: k % 2 == 0})),
	three: i => ['a' + i, '', 'c'],
	view: i => i % 2 ? 'short' + i : 'a text of more than twelve bytes, ' + i,
	bview: i => new Uint8Array(i % 2 ? [i, 0] : range(20 + i, k => k + i & 255)),
	holes: i => i % 4 ? i : null,
	words: i => range(i % 3, k => 'w' + (i + k) % 4),
	label: i => i % 3};
const text = new A.Utf8, required = (name, type) => new A.Field(name, type, false);
const field = (name, type) => new A.Field(name, type, true);
const types = {
	tags: new A.List(field('item', text)),
	grid: new A.List(field('item', new A.List(field('item', new A.Int16)))),
	st: new A.Struct([field('a', new A.Int32), field('b', text),
		field('c', new A.List(field('item', new A.Float64)))]),
	pairs: new A.List(field('item', new A.Struct([field('p', new A.Int8),
		field('q', new A.Bool)]))),
	holes: new A.Int16, label: new A.Int64};
const more = {
	kind: new A.Dictionary(text, new A.Int8), code: new A.Dictionary(new A.Int32, new A.Int16),
	blob: new A.Dictionary(new A.Binary, new A.Uint8),
	maybe: new A.Dictionary(text, new A.Int32),
	...types, three: new A.FixedSizeList(3, field('item', text)),
	view: new A.Utf8View, bview: new A.BinaryView};

const value = (name, i) => name == 'label' ? BigInt(of[name](i)) : of[name](i);
function table(types, rows) {
	return new A.Table(Object.fromEntries(Object.entries(types).map(([name, type]) =>
		[name, A.vectorFromArray(rows.map(i => value(name, i)), type)])));
}
// Two batches, the dictionary of each its own; in a stream it is replaced.
const halves = [table(more, ALL.slice(0, 25)), table(more, ALL.slice(25))];
const all = table(more, ALL);
fs.writeFileSync('nested.arrow', A.tableToIPC(all, 'file'));
const w = new A.RecordBatchStreamWriter;
for (const t of halves)
	for (const b of t.batches)
		w.write(b);
w.finish();
fs.writeFileSync('nested.arrows', w.toUint8Array(true));

// Polars by way of JSON; strings become views, categories dictionaries of them.
const names = ['kind', 'maybe', 'tags', 'grid', 'st', 'pairs', 'view', 'holes', 'words', 'label'];
const lines = ALL.map(i => JSON.stringify(Object.fromEntries(
	names.map(n => [n, of[n](i)])))).join('\n');
let df = pl.readJSON(Buffer.from(lines), {format: 'lines'});
df = df.withColumns(pl.col('kind').cast(pl.Categorical), pl.col('maybe').cast(pl.Categorical),
	pl.col('words').cast(pl.List(pl.Categorical)));
for (const c of ['uncompressed', 'zstd'])
	df.writeIPC(`nested-${c}.arrow`, {compression: c});
df.writeParquet('nested.parquet', {compression: 'zstd'});

// DuckDB, from JSON as well: lz4, maps.
fs.writeFileSync('nested.json', lines);
const db = await (await duckdb.DuckDBInstance.create()).connect();
await db.run(`create table t as select *, map([kind], [label]) as map
	from read_json('nested.json', format = 'newline_delimited')`);
await db.run(`copy t to 'nested-duck.parquet' (format parquet, compression lz4_raw,
	row_group_size 2048)`);
await db.run(`copy (select label, tags from t) to 'brotli.parquet'
	(format parquet, compression brotli)`);
// Structures of one field: names are part of what they are.
await db.run(`copy (select [{'u': i::int}, {'u': i::int + 1}] a, {'z': [i::int, 2]} b,
	{'z': null::int[]} d, [null::struct(u int)] e, [i::int, null] f, [[i::int]] g,
	{'s': {'t': [i::double]}} as h, i::int as "label" from range(5) t(i))
	to 'nested-one.parquet' (format parquet)`);
fs.unlinkSync('nested.json');

// arrow-rs: groups of 40 rows, pages of few values, both versions.
const {Table, writeParquet, WriterPropertiesBuilder, WriterVersion, Compression} =
	await import('parquet-wasm/node');
const plain = table({...types, maybe: text}, ALL);
for (const [name, version, dictionary] of [['nested1', WriterVersion.V1, false],
	['nested2', WriterVersion.V2, true]]) {
	const p = new WriterPropertiesBuilder().setWriterVersion(version)
		.setDictionaryEnabled(dictionary).setMaxRowGroupSize(40)
		.setDataPageSizeLimit(64).setWriteBatchSize(8)
		.setCompression(Compression.SNAPPY);
	fs.writeFileSync(name + '.parquet',
		writeParquet(Table.fromIPCStream(A.tableToIPC(plain, 'stream')), p.build()));
}
