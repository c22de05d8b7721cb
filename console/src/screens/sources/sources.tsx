// Data sources of vulnerabilities: their age, their records, and why a sync failed. For the operator.
import { me } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import type { VulnerabilitySources } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { useLoad } from '../../ui/load.ts'
import { Screen } from '../../ui/screen.tsx'
import { Empty, Note, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge, Breakable, Code } from '../../ui/text.tsx'
import { sourceWords } from '../../words/sources.ts'
import { numbers, words } from '../../words.ts'

const command = 'pinfold vulnerabilities sync'

export function SourcesScreen() {
  return (
    <Screen title={words.dataSources}>{me.isOperator ? <Sources /> : <Empty>{sourceWords.onlyOperator}</Empty>}</Screen>
  )
}

type State = keyof typeof sourceWords.sourceStates
type Row = { name: string; url: string; license: string; records: number; fetched: string; error: string; state: State }

const kinds = { current: 'good', old: 'warn', failed: 'bad', missing: 'warn' } as const
const maxAgeMs = 2 * 86_400_000

function Sources() {
  const read = useLoad('data sources', (signal) =>
    ask<VulnerabilitySources>('GET', '/control/v1/vulnerabilitySources', { signal }),
  )
  return (
    <Shown of={read}>
      {(found) => {
        const rows = rowsOf(found)
        if (rows.length === 0) return <Empty command={command}>{sourceWords.noSources}</Empty>
        return (
          <>
            <Note>{sourceWords.sourcesText}</Note>
            <Table
              caption={words.dataSources}
              items={rows}
              keyOf={({ name }) => name}
              columns={[
                {
                  title: sourceWords.sourceName,
                  isHead: true,
                  cell: ({ name, url }) => (
                    <span title={url}>
                      <Breakable text={name} />
                    </span>
                  ),
                },
                {
                  title: words.state,
                  cell: ({ state, error }) => (
                    <>
                      <Badge kind={kinds[state]}>{sourceWords.sourceStates[state]}</Badge>
                      {error !== '' && <span class="hint"> {error}</span>}
                    </>
                  ),
                },
                {
                  title: sourceWords.lastSync,
                  cell: ({ fetched }) =>
                    fetched === '' ? <span class="dim">{sourceWords.neverFetched}</span> : <Ago at={fetched} />,
                },
                { title: sourceWords.records, isNumber: true, cell: ({ records }) => numbers(records) },
                { title: sourceWords.license, cell: ({ license }) => <bdi>{license || '–'}</bdi> },
              ]}
            />
            <p>{sourceWords.syncHint}</p>
            <Code text={command} label={words.copyCommand} />
          </>
        )
      }}
    </Shown>
  )
}

function stateOf(fetched: string, error: string): State {
  if (error !== '') return 'failed'
  if (fetched === '') return 'missing'
  return Date.now() - Date.parse(fetched) > maxAgeMs ? 'old' : 'current'
}

/** Stored sources, and those that packages of stored images need but that were never read. */
function rowsOf({ sources, needed }: VulnerabilitySources): Row[] {
  const stored = sources.map(({ name, url, licence, records, fetchTime, error }): Row => {
    const fetched = fetchTime ?? ''
    const state = stateOf(fetched, error)
    return { ...{ name, url, license: licence, records: Number(records), fetched, error }, state }
  })
  const known = new Set(stored.map(({ name }) => name))
  const missing = needed
    .filter((name) => !known.has(name))
    .map((name): Row => ({ ...{ name, url: '', license: '', records: 0, fetched: '', error: '' }, state: 'missing' }))
  return [...missing, ...stored]
}
