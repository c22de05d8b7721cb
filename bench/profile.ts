// Summary of a processor profile: the functions with the most self time, and their modules.
import { readFileSync } from 'node:fs'

type Node = { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }
type Profile = { nodes: Node[]; samples: number[]; timeDeltas: number[] }

const outside = ['(idle)', '(program)', '(root)']

function ownerOf({ callFrame: { functionName, url } }: Node): string {
  if (functionName === '(garbage collector)') return 'garbage collector'
  const module = /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
  if (module) return module
  if (/\/(?:src|gen)\//.test(url)) return 'ours'
  return url.startsWith('node:') ? 'Node' : 'engine and kernel'
}

function nameOf({ callFrame: { functionName, url, lineNumber } }: Node): string {
  const location = url === '' ? '' : ` ${url.split('/').slice(-2).join('/')}:${lineNumber + 1}`
  return `${functionName || '(anonymous)'}${location}`
}

/** Lines of text: the shares of whom it was spent in, and the `most` functions that took most. Idle time is no part of it. */
export function profileOf(file: string, most = 12): string[] {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as Profile
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const [owners, functions] = [new Map<string, number>(), new Map<string, number>()]
  let total = 0
  for (const [i, id] of samples.entries()) {
    const node = byId.get(id)!
    if (node.callFrame.functionName === '(idle)') continue
    const took = timeDeltas[i]!
    total += took
    const owner = outside.includes(node.callFrame.functionName) ? 'engine and kernel' : ownerOf(node)
    owners.set(owner, (owners.get(owner) ?? 0) + took)
    functions.set(nameOf(node), (functions.get(nameOf(node)) ?? 0) + took)
  }
  const shares = (of: Map<string, number>, count: number) =>
    [...of]
      .sort(([, a], [, b]) => b - a)
      .slice(0, count)
      .map(([name, took]) => `${((100 * took) / total).toFixed(1)} % ${name}`)
  return [shares(owners, 8).join(', '), ...shares(functions, most).map((line) => `  ${line}`)]
}
