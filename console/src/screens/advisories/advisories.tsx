// Advisories: vulnerabilities of a package, and their events that await a review.
import { paths } from '../../app/paths.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import type { Advisory } from '../../data/types.ts'
import { ActButton, Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { useSearched } from '../../ui/searched.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, Table } from '../../ui/table.tsx'
import { Badge, Time } from '../../ui/text.tsx'
import { advisoryWords } from '../../words/advisories.ts'
import { words } from '../../words.ts'

const root = '/vulnerabilities/v2/advisories'

export function AdvisoriesScreen({ query }: { query: URLSearchParams }) {
  const { values, page, size, read, search } = useSearched<Advisory>({
    ...{ path: root, member: 'advisories', at: paths.advisories, query, names: ['q', 'review'] },
    asked: ({ q, review }) => ({ query: q, eventReviewStates: review, orderBy: 'update_time desc' }),
  })
  const { q = '', review = '' } = values
  return (
    <Screen title={words.advisories}>
      <Form
        key={`${q} ${review}`}
        isLine
        submit={words.find}
        onSubmit={search}
        fields={[
          { name: 'q', label: advisoryWords.advisoryQuery, type: 'search', value: q, isOptional: true },
          {
            name: 'review',
            label: advisoryWords.review,
            type: 'select',
            value: review,
            isOptional: true,
            options: Object.entries(advisoryWords.reviewFilters).map(([value, label]) => ({ value, label })),
          },
        ]}
      />
      <Shown of={read}>
        {({ items, total = items.length }) =>
          items.length === 0 ? (
            <NoItems page={page} size={size} total={total}>
              <Empty command="pinfold advisories import FILE">{advisoryWords.noAdvisories}</Empty>
            </NoItems>
          ) : (
            <>
              <Pages page={page} size={size} total={total} />
              <Table caption={words.advisories} columns={columns} items={items} keyOf={({ uid }) => uid} />
            </>
          )
        }
      </Shown>
    </Screen>
  )
}

const columns: Column<Advisory>[] = [
  {
    title: advisoryWords.advisory,
    isHead: true,
    cell: ({ uid, advisoryId }) => (
      <a data-main href={`${paths.advisories}/${uid}`}>
        <bdi>{advisoryId}</bdi>
      </a>
    ),
  },
  { title: advisoryWords.aliases, cell: ({ aliases }) => <bdi>{aliases.join(', ')}</bdi> },
  { title: words.package, cell: ({ artifactName, artifactType }) => <bdi>{`${artifactName} (${artifactType})`}</bdi> },
  { title: advisoryWords.component, cell: ({ componentName }) => <bdi>{componentName}</bdi> },
  { title: words.updatedAt, cell: ({ updateTime }) => <Time at={updateTime} /> },
]

type AdvisoryEvent = Advisory['events'][number]

export function AdvisoryScreen({ uid }: { uid: string }) {
  const read = useLoad(`advisory ${uid}`, (signal) => ask<Advisory>('GET', `${root}/${uid}`, { signal }))
  const title = read.data?.advisoryId ?? advisoryWords.advisory
  return (
    <Screen title={title} trail={[{ label: words.advisories, href: paths.advisories }]}>
      <Shown of={read}>
        {(advisory) => (
          <>
            <p>
              <bdi>{`${advisory.artifactName} (${advisory.artifactType}) ${advisory.componentName}`}</bdi>
            </p>
            <p>
              {advisory.aliases.map((id) => (
                <a key={id} class="chip" href={paths.search(id)}>
                  <bdi>{id}</bdi>
                </a>
              ))}
            </p>
            <Table
              caption={advisoryWords.advisoryEvents}
              isCaptionShown
              columns={eventColumns(advisory, read.reload)}
              items={advisory.events}
              keyOf={(one) => one.uid}
            />
          </>
        )}
      </Shown>
    </Screen>
  )
}

const members = [
  'detection',
  'truePositiveDetermination',
  'falsePositiveDetermination',
  'analysisNotPlanned',
  'fixNotPlanned',
  'pendingUpstreamFix',
  'fixed',
  'patched',
] as const

const kindOf = (event: AdvisoryEvent) => members.find((name) => event[name] !== undefined)

function noteOf(event: AdvisoryEvent): string {
  const kind = kindOf(event)
  const details = kind && (event[kind] as { note?: string; fixedVersion?: string })
  return [details?.fixedVersion, details?.note].filter(Boolean).join(' ')
}

function eventColumns(advisory: Advisory, reload: () => void): Column<AdvisoryEvent>[] {
  const columns: Column<AdvisoryEvent>[] = [
    { title: words.time, isHead: true, cell: ({ createTime }) => <Time at={createTime} /> },
    { title: words.event, cell: (event) => advisoryWords.advisoryKinds[kindOf(event) ?? 'unknown'] },
    { title: words.details, cell: (event) => <bdi>{noteOf(event)}</bdi> },
    { title: advisoryWords.author, cell: ({ author }) => <bdi>{author}</bdi> },
    {
      title: advisoryWords.review,
      cell: ({ reviewState = 'REVIEW_STATE_UNSPECIFIED', reviewer }) => (
        <>
          <Badge kind={reviewState === 'REVIEW_STATE_APPROVED' ? 'good' : 'warn'}>
            {advisoryWords.reviewStates[reviewState]}
          </Badge>{' '}
          <bdi>{reviewer}</bdi>
        </>
      ),
    },
  ]
  if (!can('advisories.update', advisory.uid)) return columns
  const decide = (uid: string, reviewState: string) => async () => {
    await ask('POST', `/control/v1/advisoryEvents/${uid}/review`, { body: { reviewState } })
    reload()
  }
  const review: Column<AdvisoryEvent> = {
    title: words.actions,
    cell: ({ uid, reviewState }) =>
      reviewState === 'REVIEW_STATE_PENDING' && (
        <>
          <ActButton act={decide(uid, 'REVIEW_STATE_APPROVED')}>{advisoryWords.approve}</ActButton>{' '}
          <ActButton act={decide(uid, 'REVIEW_STATE_REQUEST_CHANGES')}>{advisoryWords.requestChanges}</ActButton>{' '}
          <ActButton act={decide(uid, 'REVIEW_STATE_REJECTED')}>{advisoryWords.reject}</ActButton>
        </>
      ),
  }
  return [...columns, review]
}
