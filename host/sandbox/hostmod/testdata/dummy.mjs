// Writes the module that jco makes of a world to show its lowered functions:
//
//	node --input-type=module - WIT-DIRECTORY OUTPUT <dummy.mjs
import { _addPreopen } from '@bytecodealliance/preview2-shim/filesystem';
import { $init, generateTypes } from '@bytecodealliance/jco-transpile/component';
import { componentEmbed } from '@bytecodealliance/jco-transpile/wasm-tools';
import { writeFileSync } from 'node:fs';

const [dir, output] = process.argv.slice(2);
_addPreopen('/', '/');
await $init;
try {
  generateTypes('wit', { wit: { tag: 'path', val: dir } }); // which says what it cannot read
  writeFileSync(output, await componentEmbed({ dummy: true, witPath: dir }));
} catch (e) {
  console.error(e.message);
  process.exit(1);
}
