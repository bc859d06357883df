// SPDX-License-Identifier: BSD-2-Clause
// Writes binary*.arrow and binary*.parquet beside it: bytes and lists of varying length,
// with apache-arrow (JavaScript), hyparquet-writer and parquet-wasm, from npm:
//   npm install apache-arrow hyparquet-writer parquet-wasm && node binary.mjs
// The values are those that test_binary.py computes again.
import * as A from 'apache-arrow';
import fs from 'fs';
import {execFileSync} from 'child_process';

const all = (lo, hi) => Array.from({length: hi - lo}, (_, i) => lo + i);
// Some magic, then so many bytes; none, and a null.
const blob = (magic, i) => i % 10 === 4 ? new Uint8Array(0) : new Uint8Array(
	[...magic, ...Array(i * 7 % 50).fill(0).map((_, k) => (i + k) % 256)]);
const orNull = (f, i) => i % 10 === 0 ? null : f(i);
const JPG = [0xff, 0xd8, 0xff], FLAC = [...'fLaC'].map(c => c.charCodeAt(0));
const json = i => new TextEncoder().encode(JSON.stringify({row: i}));
const list = i => Array(i % 4).fill(0).map((_, k) => i + k / 2);
const of = {
	photo: i => orNull(i => blob(JPG, i), i),
	plain: i => blob([], i),
	meta: json,
	image: i => ({bytes: blob(JPG, i), path: i + '.jpg'}),
	sound: i => orNull(i => ({path: null, bytes: blob(FLAC, i)}), i),
	note: i => orNull(i => 'note ' + i, i),
	floats: i => orNull(list, i),
	counts: i => Array(i % 3).fill(i * -1000),
	holes: i => i % 5 ? [i] : [i, null]};
const field = (name, type, nullable = true) => new A.Field(name, type, nullable);
const types = {
	photo: new A.Binary, plain: new A.Binary, meta: new A.LargeBinary,
	image: new A.Struct([field('bytes', new A.Binary), field('path', new A.Utf8)]),
	sound: new A.Struct([field('path', new A.Utf8), field('bytes', new A.Binary)]),
	note: new A.Utf8, floats: new A.List(field('item', new A.Float32)),
	counts: new A.List(field('item', new A.Int64)),
	holes: new A.List(field('item', new A.Int16))};
const value = (name, i) => name === 'counts' ? of.counts(i).map(BigInt) : of[name](i);
const batch = (lo, hi) => new A.Table(Object.fromEntries(Object.entries(types).map(
	([name, type]) => [name, A.vectorFromArray(all(lo, hi).map(i => value(name, i)), type)])));
const table = batch(0, 5).concat(batch(5, 70), batch(70, 100));

fs.writeFileSync('binary.arrow', A.tableToIPC(table, 'file'));
const zstd = (how, input) => new Uint8Array(execFileSync('zstd', ['-qc', ...how], {input}));
A.compressionRegistry.set(A.CompressionType.ZSTD, {
	encode: data => zstd([], data), decode: data => zstd(['-d'], data)});
// Its writer (21.2) says how long a buffer is when it is compressed, not when it is not.
class Writer extends A.RecordBatchFileWriter {
	_compressBodyBuffers(buffers) {
		const out = super._compressBodyBuffers(buffers);
		buffers.forEach((b, i) => {
			const p = out.buffers[2 * i], head = new DataView(p.buffer, p.byteOffset);
			if (p.length && head.getBigInt64(0, true) !== -1n)
				head.setBigInt64(0, BigInt(b.byteLength), true);
		});
		return out;
	}
}
const writer = new Writer({compressionType: A.CompressionType.ZSTD});
writer.writeAll(table.batches).finish();
fs.writeFileSync('binary-zstd.arrow', await writer.toUint8Array());

// Row groups of 30 rows, small pages, both versions of data pages; by arrow-rs.
const {Table, writeParquet, WriterPropertiesBuilder, WriterVersion, Compression} =
	await import('parquet-wasm/node');
for (const [name, version] of [['binary1', WriterVersion.V1], ['binary2', WriterVersion.V2]]) {
	const p = new WriterPropertiesBuilder().setWriterVersion(version)
		.setMaxRowGroupSize(30).setDataPageSizeLimit(300).setWriteBatchSize(8)
		.setCompression(Compression.SNAPPY);
	fs.writeFileSync(name + '.parquet',
		writeParquet(Table.fromIPCStream(A.tableToIPC(table, 'stream')), p.build()));
}
// One page for each column.
const {parquetWriteBuffer} = await import('hyparquet-writer');
fs.writeFileSync('binary-one.parquet', new Uint8Array(parquetWriteBuffer({
	columnData: ['photo', 'plain', 'meta'].map(name => ({name, type: 'BYTE_ARRAY',
		data: all(0, 100).map(i => of[name](i)), nullable: name === 'photo'})).concat(
		{name: 'note', type: 'STRING', data: all(0, 100).map(of.note)})})));
