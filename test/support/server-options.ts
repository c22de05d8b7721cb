import { readFileSync } from 'node:fs'
import { program } from './process.ts'

/** Options that `bin/pinfold` passes to Node, such as `--expose-gc`. */
export function serverOptions(): string[] {
  return /^exec "\$here\/pinfold-node" (--.+) "\$here/m.exec(readFileSync(program, 'utf8'))![1]!.split(' ')
}
