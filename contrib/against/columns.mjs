// SPDX-License-Identifier: BSD-2-Clause
// Columns of a Parquet or Arrow file, by hyparquet or apache-arrow: a line of JSON
// [name, is text, values] for each.  What JSON has not is {"#int": "..."} and the like.
//
//     node columns.mjs [--version] FILE
//
// Modules are looked for in $NODE_PATH, and where npm installs them for all: not in the
// working directory, where anybody's files may be.  Exit status 3: they are not there.
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'

const places = [...(process.env.NODE_PATH ?? '').split(':').filter(p => p),
	join(dirname(process.execPath), '../lib/node_modules'), '/usr/lib/node_modules',
	'/usr/share/nodejs']

// The module of a name, and its version.
async function find(name) {
	for (const place of places) {
		const folder = join(place, name)
		let about
		try {
			about = JSON.parse(
				readFileSync(join(folder, 'package.json'), 'utf8'))
		} catch {
			continue
		}
		const require = createRequire(join(place, '..', 'x.js'))
		const file = require.resolve(folder)
		return [await import(pathToFileURL(file)), name + ' ' + about.version]
	}
	return [null, '']
}

function tag(x) {
	if (x === null || x === undefined)
		return null
	if (typeof x === 'bigint')
		return { '#int': x.toString() }
	if (typeof x === 'number')
		return Number.isFinite(x) && !Object.is(x, -0) ? x :
			{ '#float': Object.is(x, -0) ? '-0.0' : String(x) }
	if (typeof x === 'string' || typeof x === 'boolean')
		return x
	if (x instanceof Date)
		return { '#other': 'date' }
	if (x instanceof Uint8Array)
		return { '#bytes': Buffer.from(x).toString('hex') }
	if (Array.isArray(x) || ArrayBuffer.isView(x))
		return Array.from(x, tag)
	return Object.fromEntries(Object.entries(x).map(([k, v]) => [k, tag(v)]))
}

function print(name, text, values) {
	process.stdout.write(JSON.stringify([name, text, values]) + '\n')
}

// ---- Arrow ---------------------------------------------------------------------

function typed(arrow, type, x) {
	const { Type } = arrow
	if (x === null || x === undefined)
		return null
	switch (type.typeId) {
	case Type.Dictionary:
		return typed(arrow, type.dictionary, x)
	case Type.Int: case Type.Bool: case Type.Utf8: case Type.LargeUtf8:
	case Type.Binary: case Type.LargeBinary: case Type.FixedSizeBinary:
	case Type.Utf8View: case Type.BinaryView:
		return tag(x)
	case Type.Float:	// of 16 bits the library gives numbers, too
		return tag(x)
	case Type.List: case Type.LargeList: case Type.FixedSizeList:
		return Array.from(x, v => typed(arrow, type.children[0].type, v))
	case Type.Struct:
		return Object.fromEntries(type.children.map(
			f => [f.name, typed(arrow, f.type, x[f.name])]))
	case Type.Map: {
		const [key, value] = type.children[0].type.children
		return Array.from(x, ([k, v]) => ({ key: typed(arrow, key.type, k),
			value: typed(arrow, value.type, v) }))
	}
	default:
		return { '#other': String(type) }
	}
}

function byArrow(arrow, path) {
	const table = arrow.tableFromIPC(readFileSync(path))
	for (const field of table.schema.fields) {
		const column = table.getChild(field.name)
		const values = []
		for (let i = 0; i < table.numRows; i++)
			values.push(typed(arrow, field.type, column.get(i)))
		const { Type } = arrow
		let type = field.type
		if (type.typeId === Type.Dictionary)
			type = type.dictionary
		print(field.name, [Type.Utf8, Type.LargeUtf8, Type.Utf8View].includes(
			type.typeId), values)
	}
}

// ---- Parquet -------------------------------------------------------------------

async function byParquet(parquet, codecs, path) {
	const file = new Uint8Array(readFileSync(path)).buffer
	const metadata = await parquet.parquetMetadataAsync(file)
	const rows = await parquet.parquetReadObjects({ file, metadata, utf8: false,
		compressors: codecs?.compressors })
	const { children } = parquet.parquetSchema(metadata)
	for (const { element } of children) {
		const values = rows.map(row => tag(row[element.name]))
		print(element.name, values.every(v => typeof v === 'string'), values)
	}
}

const version = process.argv[2] === '--version'
const path = process.argv[version ? 3 : 2]
const isParquet = readFileSync(path).subarray(0, 4).toString('latin1') === 'PAR1'
const [module, name] = await find(isParquet ? 'hyparquet' : 'apache-arrow')
if (!module) {
	console.error((isParquet ? 'hyparquet' : 'apache-arrow') + ' for node is here')
	process.exit(3)
}
try {
	if (version)
		console.log(name)
	else if (isParquet)
		await byParquet(module, (await find('hyparquet-compressors'))[0], path)
	else
		byArrow(module, path)
} catch (e) {
	console.error(String(e))
	process.exitCode = 1
}
