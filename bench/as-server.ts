import { readFileSync } from 'node:fs'
import { keepSmall } from '../src/cli/server/heap.ts'
import { program } from '../test/support/process.ts'
import { serverOptions } from '../test/support/server-options.ts'

/** Restarts the process (with the same pid) with the options that `bin/pinfold` gives to a server, unless it has them already. */
export function runAsServer(): void {
  keepSmall()
  const text = readFileSync(program, 'utf8')
  const settings = [...text.matchAll(/^export (MALLOC_\w+)="\$\{\w+-(\d+)\}"$/gm)].map(([, name, value]) => [
    name!,
    value!,
  ])
  if (settings.length === 0) throw new Error('bin/pinfold says nothing of memory')
  if (globalThis.gc && settings.every(([name]) => process.env[name!] !== undefined)) return
  const args = [process.execPath, ...serverOptions(), ...process.execArgv, ...process.argv.slice(1)]
  process.execve!(process.execPath, args, { ...Object.fromEntries(settings), ...process.env })
}
