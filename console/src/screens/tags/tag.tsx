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
import { Segmented } from '../../ui/tabs.tsx'
import { Badge, Copy, Digest, hex8, timeText } from '../../ui/text.tsx'
import { tagWords } from '../../words/tags.ts'
import { words } from '../../words.ts'
import { pinOf } from '../start/start.tsx'
import { DigestAtTime } from './as-of.tsx'
import { Delta } from './delta.tsx'
import { type Assignment, isDeletion, readMoves, toAssignments } from './moves.ts'
import { ReportedHistory } from './reported-history.tsx'
import { RestoreButton } from './restore.tsx'
import { TagView } from './tag-view.tsx'
import { Timeline } from './timeline.tsx'
import { When } from './when.tsx'

type Props = { names: readonly string[]; tag: string; query: URLSearchParams }

export function TagScreen({ names, tag, query }: Props) {
  const [at, from, to] = ['at', 'from', 'to'].map((name) => instant(query.get(name)))
  const [age = '', hold = ''] = ['age', 'hold'].map((name) => query.get(name) ?? '')
  const range = query.get('range') ?? '30'
  const key = `tag ${names.join('/')}:${tag} ${from} ${to}`
  const history = useLoad(key, async (signal) => {
    const { item: repo } = await findRepo(names)
    const wanted = { tag, ...(from && { startTime: from }), ...(to && { endTime: to }) }
    return { repo, ...(await readMoves(repo.uid, wanted, signal)) }
  })
  const [updates, setUpdates] = useState(0)
  const reload = () => {
    go(paths.with(here(), { at: undefined }))
    setUpdates(updates + 1)
    history.reload()
  }
  const trail = [...trailOf(names), { label: names.at(-1)!, href: paths.repo(names) }]
  return (
    <Screen title={`${names.at(-1)}:${tag}`} trail={trail} crumb={tag}>
      <Shown of={history}>
        {({ repo, items, next }) =>
          items.length === 0 ? (
            <Empty>{from || to ? tagWords.noUpdatesThen : tagWords.noTagHistory}</Empty>
          ) : (
            <>
              <DigestAtTime key={updates} names={names} repo={repo.uid} tag={tag} at={at} onRestore={reload} />
              <History {...{ names, repo: repo.uid, tag, items, at, onRestore: reload }} range={range} />
              <More next={next} label={words.showOlder}>
                {(rest) => <OlderUpdates {...{ names, repo: repo.uid, tag, onRestore: reload }} after={rest} />}
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

type UpdatesProps = {
  names: readonly string[]
  repo: string
  tag: string
  items: readonly Move[]
  at: string | undefined
  onRestore: () => void
}
type HistoryProps = UpdatesProps & { range: string }

const day = 86_400_000

function History({ range, ...updates }: HistoryProps) {
  const { names, items, at } = updates
  const [picked, setPicked] = useState<Assignment>()
  const pick = (stay: Assignment, isSecond: boolean) => {
    if (isSecond && picked && picked.digest !== stay.digest) return go(paths.diff(names, picked.digest, stay.digest))
    setPicked(stay)
    go(paths.with(here(), { at: stay.move.time }))
  }
  return (
    <>
      <div class="timeline-head">
        <h2>{tagWords.timeline}</h2>
        <Segmented
          label={tagWords.range}
          choices={Object.entries(tagWords.ranges).map(([value, label]) => ({ value, label }))}
          value={range}
          onChoose={(value) => go(paths.with(here(), { range: value === '30' ? undefined : value }))}
        />
      </div>
      <Timeline
        key={range}
        assignments={toAssignments(items)}
        at={at ? Date.parse(at) : undefined}
        now={Date.now()}
        range={range === 'all' ? Number.POSITIVE_INFINITY : Number(range) * day}
        onPick={pick}
      />
      <p class="dim">{tagWords.timelineHint}</p>
      <TagUpdates {...updates} />
    </>
  )
}

/** Number of updates for which the change in vulnerabilities is loaded at once. The other updates have a link that loads it. */
const compared = 10

function TagUpdates(props: UpdatesProps) {
  const { items, at } = props
  const isThen = ({ time, endTime }: Move) =>
    at !== undefined && time <= at && (endTime === undefined || endTime === '' || endTime > at)
  return (
    <Table
      caption={tagWords.tagUpdates}
      columns={columnsFor(props, items.filter(isReplacing).slice(0, compared))}
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

const columnsFor = ({ names, repo, tag, onRestore }: UpdatesProps, asked: readonly Move[]): Column<Move>[] => [
  {
    title: words.time,
    isHead: true,
    cell: (move) => (
      <a data-main href={paths.with(here(), { at: move.time })}>
        <When move={move} />
      </a>
    ),
  },
  {
    title: words.event,
    cell: ({ event, restoreReason }) =>
      restoreReason ? <Badge kind="info">{tagWords.restored}</Badge> : (tagWords.tagEvents[event] ?? event),
  },
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
  {
    title: tagWords.source,
    cell: ({ source, restoreReason }) => (restoreReason ? <q dir="auto">{restoreReason}</q> : tagWords.sources[source]),
  },
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
        {can('tag.create', repo) && (move.endTime || isDeletion(move)) && (
          <RestoreButton
            {...{ names, repo, tag, digest: move.digest, onRestore }}
            label={tagWords.restoreOf(hex8(move.digest), timeText(move.time))}
          >
            {`${tagWords.restore}…`}
          </RestoreButton>
        )}{' '}
        <Copy isPin text={pinOf(names, move.digest)} label={tagWords.copyWithDigestAt(move.time)}>
          {tagWords.copyWithDigest}
        </Copy>
      </>
    ),
  },
]

const canCompare = (repo: string): boolean => can('sboms.list', repo) && can('vuln_reports.list', repo)

type OlderProps = Omit<UpdatesProps, 'items' | 'at'> & { after: string }

/** Older records than those of the first page, in pages. */
function OlderUpdates({ after, ...about }: OlderProps) {
  const { repo, tag } = about
  const page = useLoad(`older ${after}`, (signal) => readMoves(repo, { tag, after }, signal))
  return (
    <Shown of={page}>
      {({ items, next }) => (
        <>
          <TagUpdates {...about} items={items} at={undefined} />
          {next === '' && <Note>{words.noOlder}</Note>}
          <More next={next} label={words.showOlder}>
            {(rest) => <OlderUpdates {...about} after={rest} />}
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
