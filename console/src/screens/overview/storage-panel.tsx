// Storage of an organization and its quota.
import { paths } from '../../app/paths.ts'
import { ask } from '../../data/api.ts'
import type { Quotas } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Shown } from '../../ui/states.tsx'
import { bytes } from '../../ui/text.tsx'
import { overviewWords } from '../../words/overview.ts'
import { numbers, words } from '../../words.ts'
import { Panel } from './panel.tsx'

type Props = { names: readonly string[]; group: string }

export function StoragePanel({ names, group }: Props) {
  const read = useLoad(`quotas ${group}`, (signal) => ask<Quotas>('GET', `/iam/v2/quotas/${group}`, { signal }))
  const link = { text: words.nouns.settings, href: paths.group(names, 'settings') }
  return (
    <Panel title={overviewWords.storage} link={link}>
      <Shown of={read}>
        {({ quotas }) => {
          const of = (name: string) => quotas.find((one) => one.name === name)
          const [storage, repositories] = [of('bytes'), of('repositories')]
          const [used, limit] = [Number(storage?.used ?? 0), Number(storage?.limit ?? 0)]
          return (
            <>
              <p>
                <strong>{bytes(used)}</strong> {limit > 0 ? overviewWords.ofLimit(bytes(limit)) : overviewWords.noLimit}
              </p>
              {limit > 0 && <meter max={limit} value={used} high={limit * 0.9} aria-label={overviewWords.storage} />}
              {repositories?.used !== undefined && (
                <p class="hint">{overviewWords.repositoryCount(numbers(Number(repositories.used)))}</p>
              )}
            </>
          )
        }}
      </Shown>
    </Panel>
  )
}
