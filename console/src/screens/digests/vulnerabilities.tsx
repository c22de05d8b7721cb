// Findings of an image: filters, table in pages, and export.
import { paths } from '../../app/paths.ts'
import { go, here } from '../../app/route.ts'
import { ask } from '../../data/api.ts'
import type { Finding, Findings } from '../../data/types.ts'
import { Form } from '../../ui/form.tsx'
import { useLoad } from '../../ui/load.ts'
import { SaveButton } from '../../ui/save.tsx'
import { noFindingsTexts } from '../../ui/scan-words.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { type Column, NoItems, Pages, pageOf, Table } from '../../ui/table.tsx'
import { Badge, hex8, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'
import { fixedIn, idsOf, packageOf, severities, stateOf, toCsv, toJson } from './finding-export.ts'
import { Gaps } from './gaps.tsx'

type Props = { repo: string; digest: string; query: URLSearchParams }

export function Vulnerabilities({ repo, digest, query }: Props) {
  const read = useLoad(`findings ${repo} ${digest}`, (signal) =>
    ask<Findings>('GET', `/registry/v2/repos/${repo}/digests/${digest}/findings`, { signal }),
  )
  return (
    <Shown of={read}>
      {({ findings, gaps, coverage }) => {
        const [none, unscanned] = noFindingsTexts(coverage)
        return (
          <>
            <Gaps gaps={gaps} />
            {findings.length > 0 && <FindingList findings={findings} digest={digest} query={query} />}
            {findings.length === 0 && (
              <Empty>
                {none} <bdi>{unscanned}</bdi>
              </Empty>
            )}
          </>
        )
      }}
    </Shown>
  )
}

const size = 50
const filters = ['q', 'severity', 'only'] as const

/** The API returns all findings of an image at once, so filters and pages need no further request. */
function FindingList({
  findings,
  digest,
  query,
}: {
  findings: readonly Finding[]
  digest: string
  query: URLSearchParams
}) {
  const [text = '', severity = '', only = ''] = filters.map((name) => query.get(name) ?? '')
  const page = pageOf(query)
  const found = findings.filter((one) => isMatch(one, { text, severity, only }))
  const shown = found.slice((page - 1) * size, page * size)
  const choose = (values: Record<string, string>) =>
    go(paths.with(here(), { page: undefined, ...Object.fromEntries(filters.map((name) => [name, values[name]])) }))
  const file = (kind: string) => `${hex8(digest)}-vulnerabilities.${kind}`
  return (
    <>
      <div class="list-head">
        <Form
          key={`${text} ${severity} ${only}`}
          isLine
          submit={words.show}
          onSubmit={choose}
          fields={[
            { name: 'q', label: digestWords.findingText, type: 'search', value: text, isOptional: true },
            {
              ...{ name: 'severity', label: words.severity, type: 'select', value: severity, isOptional: true },
              options: [
                { value: '', label: digestWords.allSeverities },
                ...severities.map((one) => ({ value: one, label: words.severities[one]! })),
              ],
            },
            {
              ...{ name: 'only', label: digestWords.onlyFindings, type: 'select', value: only, isOptional: true },
              options: Object.entries(digestWords.findingFilters).map(([value, label]) => ({ value, label })),
            },
          ]}
        />
        <p class="actions">
          <SaveButton label={digestWords.exportAs('CSV')} file={file('csv')} read={async () => toCsv(found)}>
            CSV
          </SaveButton>
          <SaveButton label={digestWords.exportAs('JSON')} file={file('json')} read={async () => toJson(found)}>
            JSON
          </SaveButton>
        </p>
      </div>
      {found.length === 0 ? (
        <Empty
          action={
            <a
              class="button"
              href={paths.with(here(), { q: undefined, severity: undefined, only: undefined, page: undefined })}
            >
              {digestWords.clearFilters}
            </a>
          }
        >
          {digestWords.noFindingFound(findings.length)}
        </Empty>
      ) : shown.length === 0 ? (
        <NoItems page={page} size={size} total={found.length}>
          {null}
        </NoItems>
      ) : (
        <>
          <Pages page={page} size={size} total={found.length} />
          <Table caption={words.vulnerabilities} items={shown} keyOf={keyOf} columns={columns} />
        </>
      )}
    </>
  )
}

const keyOf = ({ source, record, purl }: Finding): string => `${source} ${record} ${purl}`

type Wanted = { text: string; severity: string; only: string }

function isMatch(one: Finding, { text, severity, only }: Wanted): boolean {
  const part = text.toLowerCase()
  const isText = [...idsOf(one), one.title, one.purl].some((value) => value.toLowerCase().includes(part))
  if (!isText || (severity !== '' && one.severity !== severity)) return false
  if (only === 'fixable') return one.fixedVersions.length > 0
  if (only === 'exploited') return Boolean(one.exploited)
  return only !== 'open' || stateOf(one) === 'AFFECTED'
}

const columns: Column<Finding>[] = [
  {
    title: words.vulnerability,
    isHead: true,
    cell: (one) => (
      <span class="finding">
        {idsOf(one).map((id) => (
          <a key={id} href={paths.search(id)}>
            <bdi>{id}</bdi>
          </a>
        ))}
        {one.exploited && <Badge kind="bad">{digestWords.knownExploited}</Badge>}
        <span class="hint">
          <bdi>{one.title}</bdi>
        </span>
      </span>
    ),
  },
  {
    title: words.severity,
    cell: ({ severity, score }) => (
      <span class={`severity ${severity}`}>
        {words.severities[severity] ?? severity}
        {score !== undefined && <span class="dim"> {score.toLocaleString('en', { minimumFractionDigits: 1 })}</span>}
      </span>
    ),
  },
  {
    title: digestWords.epss,
    isNumber: true,
    cell: ({ likelihood }) => <Epss epss={likelihood && Number(likelihood.epss)} />,
  },
  {
    title: words.package,
    cell: (one) => {
      const { name, version } = packageOf(one.purl)
      return (
        <span title={one.purl}>
          <bdi>{name}</bdi> <code>{version}</code>
        </span>
      )
    },
  },
  { title: digestWords.fixedIn, cell: (one) => <bdi class="mono">{fixedIn(one) || digestWords.noFix}</bdi> },
  {
    title: words.state,
    cell: (one) => (
      <>
        {words.findingStates[stateOf(one)]}
        {(one.acceptedBy.length > 0 || one.statements.length > 0) && (
          <FindingNotes accepted={one.acceptedBy} statements={one.statements} />
        )}
      </>
    ),
  },
]

/** Probability of exploitation within 30 days. */
function Epss({ epss }: { epss: number | undefined }) {
  if (epss === undefined) return <span class="dim">–</span>
  const percent = epss * 100
  return <>{percent.toLocaleString('en', { maximumFractionDigits: percent < 10 ? 1 : 0 })} %</>
}

const maxStatements = 3

type NotesProps = { accepted: Finding['acceptedBy']; statements: Finding['statements'] }

/** Accepted risks and VEX statements of a finding. */
function FindingNotes({ accepted, statements }: NotesProps) {
  const shownStatements = statements.slice(0, maxStatements)
  return (
    <ul class="plain">
      {accepted.map((one) => (
        <li key={`${one.vulnerability} ${one.riskAcceptanceUid}${one.vexSignerUid} ${one.reason}`}>
          <bdi>{one.reason}</bdi> ({words.until} <Time at={one.expireTime} />)
        </li>
      ))}
      {shownStatements.map(({ uid, author, status, justification, text }) => (
        <li key={uid}>
          <bdi>{digestWords.statementOf(author, [status, justification, text].filter(Boolean).join(', '))}</bdi>
        </li>
      ))}
      {statements.length > maxStatements && <li>{digestWords.moreStatements(statements.length - maxStatements)}</li>}
    </ul>
  )
}
