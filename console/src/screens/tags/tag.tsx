// Screen of a tag: its digests over time, and the user who made each update.
import { useState } from 'preact/hooks'
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { findRepo } from '../../data/names.ts'
import type { Move } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { More } from '../../ui/more.tsx'
import { Screen, trailOf } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { type Column, Table } from '../../ui/table.tsx'
import { Badge, Copy, Digest, timeText } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { pinOf } from '../start/start.tsx'
import { Delta } from './delta.tsx'
import { type Assignment, isDeletion, readMoveAt, readMoves, toAssignments } from './moves.ts'
import { Proof } from './proof.tsx'
import { ReportedHistory } from './reported-history.tsx'
import { TagView } from './tag-view.tsx'
import { Timeline } from './timeline.tsx'
import { When } from './when.tsx'

type Props = { names: readonly string[]; tag: string; query: URLSearchParams }

export function TagScreen({ names, tag, query }: Props) {
  const [at, from, to] = ['at', 'from', 'to'].map((name) => instant(query.get(name)))
  const [age = '', hold = ''] = ['age', 'hold'].map((name) => query.get(name) ?? '')
  const key = `tag ${names.join('/')}:${tag} ${from} ${to}`
  const history = useLoad(key, async (signal) => {
    const { item: repo } = await findRepo(names)
    const wanted = { tag, ...(from && { startTime: from }), ...(to && { endTime: to }) }
    return { repo, ...(await readMoves(repo.uid, wanted, signal)) }
  })
  const trail = [...trailOf(names), { label: names.at(-1)!, href: paths.repo(names) }]
  return (
    <Screen title={`${names.at(-1)}:${tag}`} trail={trail} crumb={tag}>
      <Shown of={history}>
        {({ repo, items, next }) =>
          items.length === 0 ? (
            <Empty>{from || to ? tagWords.noUpdatesThen : tagWords.noTagHistory}</Empty>
          ) : (
            <>
              <DigestAtTime names={names} repo={repo.uid} tag={tag} at={at} />
              <History names={names} repo={repo.uid} items={items} at={at} />
              <More next={next} label={words.showOlder}>
                {(rest) => <OlderUpdates names={names} repo={repo.uid} tag={tag} after={rest} />}
              </More>
              <ReportedHistory repo={repo.uid} tag={tag} from={from} to={to} />
              <TimeRange from={from} to={to} />
              <TagView names={names} repo={repo.uid} tag={tag} at={at} age={age} hold={hold} />
            </>
          )
        }
      </Shown>
    </Screen>
  )
}

/** Time from an address, in the form of the API. Undefined if the time is invalid. */
function instant(text: string | null): string | undefined {
  const time = text === null || text === '' ? Number.NaN : Date.parse(text)
  return Number.isNaN(time) ? undefined : new Date(time).toISOString()
}

/** Converts a time to the value of a date and time input. */
const local = (iso: string): string => iso.slice(0, 16)

type AsOfProps = { names: readonly string[]; repo: string; tag: string; at: string | undefined }

/** Digest of the tag at a time, with the pinned image name. Default: now. */
function DigestAtTime({ names, repo, tag, at }: AsOfProps) {
  const moment = useLoad(`as of ${repo} ${tag} ${at}`, (signal) =>
    readMoveAt(repo, tag, at ?? new Date().toISOString(), signal).then((move) => ({ move })),
  )
  const choose = ({ at: typed = '' }: Record<string, string>) =>
    go(paths.with(here(), { at: typed === '' ? undefined : `${typed}Z` }))
  return (
    <section aria-label={tagWords.asOf} class="as-of">
      <Form
        key={at}
        isLine
        submit={words.show}
        onSubmit={choose}
        fields={[
          { name: 'at', label: tagWords.asOfUtc, type: 'datetime-local', value: at ? local(at) : '', isOptional: true },
        ]}
      />
      <Shown of={moment}>
        {({ move }) => (
          <>
            <p role="status">
              {at ? tagWords.digestAt(timeText(at)) : tagWords.currentDigest}{' '}
              {!move ? (
                tagWords.tagMissing
              ) : isDeletion(move) ? (
                <Badge kind="warn">{words.deleted}</Badge>
              ) : (
                <>
                  <Digest of={move.digest} href={paths.digest(names, move.digest)} />{' '}
                  <Copy isPin text={pinOf(names, move.digest)} label={tagWords.copyWithDigestOf(tag)}>
                    {tagWords.copyWithDigest}
                  </Copy>{' '}
                  <span class="dim">
                    {words.since} <When move={move} />, {words.by} <bdi>{move.actorName || words.nameUnknown}</bdi>,{' '}
                    {tagWords.via} {tagWords.sources[move.source]}
                  </span>
                </>
              )}
            </p>
            {move && !isDeletion(move) && (
              <Proof
                names={names}
                repo={repo}
                tag={tag}
                digest={move.digest}
                at={at ?? move.time}
                isOpen={!move.endTime}
              />
            )}
          </>
        )}
      </Shown>
    </section>
  )
}

type HistoryProps = { names: readonly string[]; repo: string; items: readonly Move[]; at: string | undefined }

function History({ names, repo, items, at }: HistoryProps) {
  const [picked, setPicked] = useState<Assignment>()
  const pick = (stay: Assignment, isSecond: boolean) => {
    if (isSecond && picked && picked.digest !== stay.digest) return go(paths.diff(names, picked.digest, stay.digest))
    setPicked(stay)
    go(paths.with(here(), { at: stay.move.time }))
  }
  return (
    <>
      <h2>{tagWords.timeline}</h2>
      <Timeline
        assignments={toAssignments(items)}
        at={at ? Date.parse(at) : undefined}
        now={Date.now()}
        onPick={pick}
      />
      <p class="dim">{tagWords.timelineHint}</p>
      <TagUpdates names={names} repo={repo} items={items} at={at} />
    </>
  )
}

/** Number of updates for which the change in vulnerabilities is loaded at once. The other updates have a link that loads it. */
const compared = 10

function TagUpdates({ names, repo, items, at }: HistoryProps) {
  const isThen = ({ time, endTime }: Move) =>
    at !== undefined && time <= at && (endTime === undefined || endTime === '' || endTime > at)
  return (
    <Table
      caption={tagWords.tagUpdates}
      columns={columnsFor(names, repo, items.filter(isReplacing).slice(0, compared))}
      items={items}
      keyOf={({ time }) => time}
      classOf={(move) => (isThen(move) ? 'then' : '')}
    />
  )
}

/** True if the tag had an earlier digest to compare with. */
const isReplacing = (move: Move): boolean => !isDeletion(move) && move.previousDigest !== ''

const deltaColumn = (names: readonly string[], repo: string, asked: readonly Move[]): Column<Move> => ({
  title: tagWords.deltaColumn,
  cell: (move) => asked.includes(move) && <Delta names={names} repo={repo} move={move} />,
})

const columnsFor = (names: readonly string[], repo: string, asked: readonly Move[]): Column<Move>[] => [
  {
    title: words.time,
    isHead: true,
    cell: (move) => (
      <a data-main href={paths.with(here(), { at: move.time })}>
        <When move={move} />
      </a>
    ),
  },
  { title: words.event, cell: ({ event }) => tagWords.tagEvents[event] ?? event },
  {
    title: tagWords.previousDigest,
    cell: (move) => <Digest of={isDeletion(move) ? move.digest : move.previousDigest} />,
  },
  {
    title: tagWords.newDigest,
    cell: (move) =>
      isDeletion(move) ? (
        <Badge kind="warn">{words.deleted}</Badge>
      ) : (
        <Digest of={move.digest} href={paths.digest(names, move.digest)} />
      ),
  },
  { title: words.actor, cell: ({ actorName }) => <bdi>{actorName || words.nameUnknown}</bdi> },
  { title: tagWords.source, cell: ({ source }) => tagWords.sources[source] },
  ...(asked.length > 0 && canCompare(repo) ? [deltaColumn(names, repo, asked)] : []),
  {
    title: words.actions,
    cell: (move) => (
      <>
        {isReplacing(move) && (
          <a href={paths.diff(names, move.previousDigest, move.digest)} aria-label={tagWords.compareAt(move.time)}>
            {tagWords.compare}
          </a>
        )}{' '}
        <Copy isPin text={pinOf(names, move.digest)} label={tagWords.copyWithDigestAt(move.time)}>
          {tagWords.copyWithDigest}
        </Copy>
      </>
    ),
  },
]

const canCompare = (repo: string): boolean => can('sboms.list', repo) && can('vuln_reports.list', repo)

type OlderProps = { names: readonly string[]; repo: string; tag: string; after: string }

/** Older records than those of the first page, in pages. */
function OlderUpdates({ names, repo, tag, after }: OlderProps) {
  const page = useLoad(`older ${after}`, (signal) => readMoves(repo, { tag, after }, signal))
  return (
    <Shown of={page}>
      {({ items, next }) => (
        <>
          <TagUpdates names={names} repo={repo} items={items} at={undefined} />
          {next === '' && <Note>{words.noOlder}</Note>}
          <More next={next} label={words.showOlder}>
            {(rest) => <OlderUpdates names={names} repo={repo} tag={tag} after={rest} />}
          </More>
        </>
      )}
    </Shown>
  )
}

/** Form for the time range of the history. */
function TimeRange({ from, to }: { from: string | undefined; to: string | undefined }) {
  const choose = (values: Record<string, string>) => {
    const time = (name: string) => (values[name] ? `${values[name]}Z` : undefined)
    go(paths.with(here(), { from: time('from'), to: time('to') }))
  }
  const field = (name: string, label: string, value: string | undefined) =>
    ({ name, label, type: 'datetime-local', value: value ? local(value) : '', isOptional: true }) as const
  return (
    <Form
      isLine
      submit={words.show}
      onSubmit={choose}
      fields={[field('from', tagWords.fromUtc, from), field('to', tagWords.toUtc, to)]}
    />
  )
}
