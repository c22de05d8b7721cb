import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { project } from './process.ts'

/** Options that `bin/pinfold` passes to Node, such as `--expose-gc`. */
export function serverOptions(): string[] {
  return /^exec "\$here\/pinfold-node" (--.+) "\$program"/m
    .exec(readFileSync(join(project, 'bin/pinfold'), 'utf8'))![1]!
    .split(' ')
}
