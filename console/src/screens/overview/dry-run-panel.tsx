// Admission policies in dry run, and the number of images that they would deny.
import { paths } from '../../app/paths.ts'
import { ask } from '../../data/api.ts'
import type { DryRunOverview } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Shown } from '../../ui/states.tsx'
import { Badge } from '../../ui/text.tsx'
import { overviewWords } from '../../words/overview.ts'
import { Panel } from './panel.tsx'

type Props = { names: readonly string[]; group: string }

export function DryRunPanel({ names, group }: Props) {
  const read = useLoad(`dry run ${group}`, (signal) =>
    ask<DryRunOverview>('GET', `/registry/v2/dryRunOverview/${group}`, { signal }),
  )
  const link = { text: overviewWords.allPolicies, href: paths.group(names, 'policies', 'admission') }
  return (
    <Panel title={overviewWords.dryRunPanel} link={link}>
      <Shown of={read}>
        {({ policies, examined, incomplete }) =>
          policies.length === 0 ? (
            <p class="dim">{overviewWords.noDryRun}</p>
          ) : (
            <>
              <ul class="plain rows">
                {policies.map((one) => (
                  <li key={one.policyUid}>
                    <span>
                      <strong>
                        <bdi>{one.name}</bdi>
                      </strong>
                      <span class="hint">
                        <bdi>
                          {one.denied === 0
                            ? overviewWords.wouldDenyNone(one.examined)
                            : overviewWords.dryRunWouldDeny(one.denied, one.examined, one.examples.map(inOrganization))}
                        </bdi>
                      </span>
                    </span>
                    {one.denied > 0 && <Badge kind="warn">{overviewWords.imageCount(one.denied)}</Badge>}
                  </li>
                ))}
              </ul>
              {incomplete && <p class="hint">{overviewWords.onlyNewest(examined)}</p>}
            </>
          )
        }
      </Shown>
    </Panel>
  )
}

/** Path without the organization, which is that of the page. */
const inOrganization = (path: string): string => path.slice(path.indexOf('/') + 1)
