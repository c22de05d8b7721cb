import type { Distribution } from '../packages.ts'

/** Reads `ID` and `VERSION_ID` as in os-release(5). The last assignment of each is used. A missing one is empty. */
export function readOsRelease(text: string): Distribution {
  const lastOf = (name: string): string => {
    const given = [...text.matchAll(new RegExp(`^${name}=(.*)$`, 'gm'))].at(-1)?.[1]?.trim() ?? ''
    return unquote(given).slice(0, 128)
  }
  const [id, version] = [lastOf('ID'), lastOf('VERSION_ID')]
  if (id.toLowerCase() !== 'openeuler') return { id, version }
  // Only the field VERSION of openEuler names long-term support and service packs: `22.03 LTS` or `22.03 (LTS-SP3)`.
  const [, ...words] = lastOf('VERSION').split(/[\s()]+/)
  return { id, version: [version, ...words.filter((word) => /^[\w-]+$/.test(word))].join('-') }
}

/**
 * Corrects the version of Alpine edge. The os-release of an edge image can contain the version of the next release. Its list of
 * repositories shows that the image is edge.
 */
export function onBranch(distribution: Distribution, repositories: string): Distribution {
  if (distribution.id !== 'alpine') return distribution
  const lines = repositories.split('\n').filter((line) => /^\s*[^#\s]/.test(line))
  const isEdge = lines.length > 0 && lines.every((line) => /\/edge\/[a-z]+\/?\s*$/.test(line))
  return isEdge ? { ...distribution, version: 'edge' } : distribution
}

function unquote(value: string): string {
  const quote = value[0]
  if ((quote !== '"' && quote !== "'") || value.length < 2 || value.at(-1) !== quote) return value
  const inner = value.slice(1, -1)
  return quote === '"' ? inner.replace(/\\(["$`\\])/g, '$1') : inner
}
