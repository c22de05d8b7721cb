// Digest of a tag at a time: who set it, since when, and its proof. A former digest can be restored.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import type { Move } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Shown } from '../../ui/states.tsx'
import { Segmented } from '../../ui/tabs.tsx'
import { Badge, Copy, Digest, timeText } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { pinOf } from '../start/start.tsx'
import { isDeletion, readMoveAt } from './moves.ts'
import { Proof } from './proof.tsx'
import { RestoreButton } from './restore.tsx'
import { When } from './when.tsx'

type Props = {
  names: readonly string[]
  repo: string
  tag: string
  at: string | undefined
  onRestore: () => void
}

const day = 86_400_000
const ago: Record<string, number> = { yesterday: day, week: 7 * day }
/** Converts a time to the value of a date and time input. */
const local = (iso: string): string => iso.slice(0, 16)

/** Digest of the tag at a time, with the pinned image name. Default: now. */
export function DigestAtTime({ names, repo, tag, at, onRestore }: Props) {
  const read = useLoad(`as of ${repo} ${tag} ${at}`, async (signal) => {
    const now = new Date().toISOString()
    const [move, last] = await Promise.all([at ?? now, now].map((time) => readMoveAt(repo, tag, time, signal)))
    return { move, last }
  })
  return (
    <section aria-label={tagWords.asOf}>
      <Moments at={at} />
      <div class={`as-of${at ? ' then' : ''}`}>
        <Shown of={read}>
          {({ move, last }) => (
            <>
              <p role="status">
                {at ? tagWords.digestAt(timeText(at)) : tagWords.currentDigest}{' '}
                {!move ? (
                  tagWords.tagMissing
                ) : isDeletion(move) ? (
                  <Badge kind="warn">{words.deleted}</Badge>
                ) : (
                  <SetBy names={names} move={move} />
                )}
              </p>
              {move && !isDeletion(move) && (
                <>
                  <div class="actions">
                    <Copy isPin text={pinOf(names, move.digest)} label={tagWords.copyWithDigestOf(tag)}>
                      {tagWords.copyWithDigest}
                    </Copy>
                    <Former {...{ names, repo, tag, move, last, onRestore }} />
                  </div>
                  <Proof
                    names={names}
                    repo={repo}
                    tag={tag}
                    digest={move.digest}
                    at={at ?? move.time}
                    isOpen={!move.endTime}
                  />
                </>
              )}
            </>
          )}
        </Shown>
      </div>
    </section>
  )
}

function SetBy({ names, move }: { names: readonly string[]; move: Move }) {
  return (
    <>
      <Digest of={move.digest} href={paths.digest(names, move.digest)} />{' '}
      <span class="dim">
        {words.since} <When move={move} />, {words.by} <bdi>{move.actorName || words.nameUnknown}</bdi>, {tagWords.via}{' '}
        {tagWords.sources[move.source]}
      </span>
    </>
  )
}

type FormerProps = Omit<Props, 'at'> & { move: Move; last: Move | undefined }

/** Actions for a digest that the tag no longer has. */
function Former({ names, repo, tag, move, last, onRestore }: FormerProps) {
  const current = last && !isDeletion(last) ? last.digest : ''
  if (current === move.digest) return null
  return (
    <>
      {current !== '' && (
        <a class="button small" href={paths.diff(names, move.digest, current)}>
          {tagWords.compareWithNow}
        </a>
      )}
      {can('tag.create', repo) && (
        <RestoreButton {...{ names, repo, tag, digest: move.digest, onRestore }} isPrimary>
          {`${tagWords.restoreThis}…`}
        </RestoreButton>
      )}
    </>
  )
}

/** Choice of the time: now, a day or a week ago, or any time. */
function Moments({ at }: { at: string | undefined }) {
  const show = (time: string | undefined) => go(paths.with(here(), { at: time }))
  const choose = (name: string) => {
    if (name === 'now') show(undefined)
    else if (name === 'time') show(at ?? new Date().toISOString())
    else show(new Date(Date.now() - ago[name]!).toISOString())
  }
  return (
    <div class="moments">
      <Segmented
        label={tagWords.momentOf}
        choices={Object.entries(tagWords.moments).map(([value, label]) => ({ value, label }))}
        value={at ? 'time' : 'now'}
        onChoose={choose}
      />
      <Form
        key={at}
        isLine
        submit={words.show}
        onSubmit={({ at: typed = '' }) => show(typed === '' ? undefined : `${typed}Z`)}
        fields={[
          { name: 'at', label: tagWords.asOfUtc, type: 'datetime-local', value: at ? local(at) : '', isOptional: true },
        ]}
      />
    </div>
  )
}
