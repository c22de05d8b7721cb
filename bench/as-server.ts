import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { keepSmall } from '../src/cli/server/heap.ts'

/** Has the process begin anew (same pid) with what `bin/pinfold` starts a server with, unless it has it already. */
export function runAsServer(): void {
  keepSmall()
  const text = readFileSync(join(import.meta.dirname, '..', 'bin', 'pinfold'), 'utf8')
  const settings = [...text.matchAll(/^export (MALLOC_\w+)="\$\{\w+-(\d+)\}"$/gm)].map(([, name, value]) => [
    name!,
    value!,
  ])
  if (settings.length === 0) throw new Error('bin/pinfold says nothing of memory')
  const options = /^exec "\$here\/pinfold-node" (--.+) "\$here/m.exec(text)![1]!.split(' ')
  if (globalThis.gc && settings.every(([name]) => process.env[name!] !== undefined)) return
  const args = [process.execPath, ...options, ...process.execArgv, ...process.argv.slice(1)]
  process.execve!(process.execPath, args, { ...Object.fromEntries(settings), ...process.env })
}
