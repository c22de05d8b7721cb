// Restore of a former digest of a tag. The dialog shows the effect first. An update meanwhile refuses the restore.
import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { can } from '../../app/session.ts'
import { ask, Refusal } from '../../data/api.ts'
import type { Comparison, Move } from '../../data/types.ts'
import { Dialog, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { relativeText } from '../../ui/relative-time.ts'
import { Note, Shown } from '../../ui/states.tsx'
import { hex8 } from '../../ui/text.tsx'
import { showToast } from '../../ui/toast.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { isDeletion, readArchitectures, readLastMove } from './moves.ts'

type Restore = { names: readonly string[]; repo: string; tag: string; digest: string; onRestore: () => void }
type Props = Restore & { label?: string; isPrimary?: boolean; children: ComponentChildren }

export function RestoreButton({ label, isPrimary = false, children, ...restore }: Props) {
  const [isOpen, setOpen] = useState(false)
  return (
    <>
      <button
        type="button"
        class={isPrimary ? 'primary small' : 'small'}
        {...(label !== undefined && { 'aria-label': label })}
        onClick={() => setOpen(true)}
      >
        {children}
      </button>
      {isOpen && <RestoreDialog {...restore} onClose={() => setOpen(false)} />}
    </>
  )
}

const isMissing = (error: unknown): boolean => error instanceof Refusal && error.status === 404

function RestoreDialog({ names, repo, tag, digest, onRestore, onClose }: Restore & { onClose: () => void }) {
  const [conflict, setConflict] = useState(false)
  const shown = `${names.at(-1)}:${tag}`
  const read = useLoad(`restore ${repo} ${tag} ${digest}`, async (signal) => {
    const [last, isStored] = await Promise.all([
      readLastMove(repo, tag, signal),
      readArchitectures(repo, digest, signal).then(
        () => true,
        (error: unknown) => !isMissing(error),
      ),
    ])
    const current = last && !isDeletion(last) ? last.digest : ''
    const comparison = isStored && current !== '' ? await compare(repo, current, digest, signal) : undefined
    return { last, current, isStored, comparison }
  })
  const restore = async (reason: string, current: string) => {
    const headers: Record<string, string> = current === '' ? { 'if-none-match': '*' } : { 'if-match': `"${current}"` }
    const path = `/registry/v2/repos/${repo}/restoredTags/${encodeURIComponent(tag)}`
    try {
      await ask('POST', path, { body: { digest, reason }, headers })
    } catch (error) {
      if (!(error instanceof Refusal) || error.status !== 412) throw error
      setConflict(true)
      return read.reload()
    }
    showToast(tagWords.restoreDone(shown, hex8(digest)))
    onClose()
    onRestore()
  }
  return (
    <Dialog title={tagWords.restoreTitle(shown, hex8(digest))} onClose={onClose}>
      <Shown of={read}>
        {({ last, current, isStored, comparison }) => (
          <>
            {conflict && last && <Note kind="warn">{conflictText(tag, last)}</Note>}
            {!isStored ? (
              <Note kind="warn">{tagWords.notStored}</Note>
            ) : current === digest ? (
              <p>{tagWords.isCurrent}</p>
            ) : (
              <>
                <p>
                  {tagWords.restoreChange(current && hex8(current), hex8(digest))}{' '}
                  {comparison && effectText(comparison)} {tagWords.restoreEffect}{' '}
                  {current !== '' && tagWords.restoreUndo(hex8(current))}
                </p>
                <Form
                  submit={tagWords.restoreDigest}
                  onSubmit={({ reason = '' }) => restore(reason, current)}
                  fields={[{ name: 'reason', label: words.reason, hint: tagWords.restoreReasonHint }]}
                />
              </>
            )}
          </>
        )}
      </Shown>
    </Dialog>
  )
}

/** Reads the difference. Undefined if the user cannot see it or an image is not stored. */
async function compare(
  repo: string,
  baseDigest: string,
  digest: string,
  signal: AbortSignal,
): Promise<Comparison | undefined> {
  if (!can('sboms.list', repo) || !can('vuln_reports.list', repo)) return undefined
  const path = `/registry/v2/repos/${repo}/digests/${digest}/comparison`
  return ask<Comparison>('GET', path, { query: { baseDigest }, signal }).catch((error: unknown) => {
    if (isMissing(error)) return undefined
    throw error
  })
}

const severities = ['critical', 'high', 'medium', 'low', 'negligible', 'unknown']

/** Differences in vulnerabilities, in a sentence for each direction. */
function effectText({ found, resolved, unknown, gaps, baseGaps }: Comparison): string {
  const countsOf = (findings: readonly { severity: string }[]) =>
    severities
      .map((severity) => ({ severity, count: findings.filter((one) => one.severity === severity).length }))
      .filter(({ count }) => count > 0)
      .map(({ severity, count }) => tagWords.findingsOf(count, severity))
      .join(', ')
  const isPartial = unknown.length + gaps.length + baseGaps.length > 0
  return [
    ...(resolved.length > 0 ? [tagWords.fewerFindings(countsOf(resolved))] : []),
    ...(found.length > 0 ? [tagWords.moreFindings(countsOf(found))] : []),
    ...(found.length + resolved.length === 0 && !isPartial ? [tagWords.sameFindings] : []),
    ...(isPartial ? [tagWords.findingsPartial] : []),
  ].join(' ')
}

const conflictText = (tag: string, { actorName, time }: Move): string =>
  tagWords.notRestored(actorName || words.nameUnknown, tag, relativeText(time, Date.now(), 'UTC'))
