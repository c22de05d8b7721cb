// Vulnerabilities that a tag update added and removed. If an image was not scanned completely, the result is shown as unknown,
// never as none.
import { paths } from '../../app/paths.ts'
import { ask, Refusal } from '../../data/api.ts'
import type { Comparison, Move } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'

type Props = { names: readonly string[]; repo: string; move: Move }

export function Delta({ names, repo, move: { previousDigest: older, digest: newer } }: Props) {
  const read = useLoad(`delta ${repo} ${older} ${newer}`, (signal) => {
    const query = { baseDigest: older }
    return ask<Comparison>('GET', `/registry/v2/repos/${repo}/digests/${newer}/comparison`, { query, signal }).catch(
      (error: unknown) => {
        // The digest was deleted, or comes from an imported history and was never here.
        if (error instanceof Refusal && error.status === 404) return 'missing' as const
        throw error
      },
    )
  })
  if (read.error !== undefined) return <span class="dim">{tagWords.deltaFailed}</span>
  if (read.data === undefined) return <span class="dim">…</span>
  if (read.data === 'missing') return <span class="dim">{words.unknown}</span>
  const { found, resolved, unknown, gaps, baseGaps } = read.data
  const isPartial = unknown.length + gaps.length + baseGaps.length > 0
  if (isPartial && found.length + resolved.length === 0) return <span class="dim">{words.unknown}</span>
  return (
    <a href={paths.diff(names, older, newer)}>
      {tagWords.delta(found.length, resolved.length)}
      {isPartial && ` ${tagWords.deltaPartial}`}
    </a>
  )
}
