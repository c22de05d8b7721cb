// Images of an organization by their worst severity, the worst images, images that were not scanned, and data sources.
import { paths } from '../../app/paths.ts'
import { ask } from '../../data/api.ts'
import type { ImageOverview } from '../../data/types.ts'
import { Ago } from '../../ui/ago.tsx'
import { FindingsStrip } from '../../ui/findings.tsx'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Badge } from '../../ui/text.tsx'
import { overviewWords } from '../../words/overview.ts'
import { numbers, words } from '../../words.ts'
import { Panel } from './panel.tsx'

type Props = { names: readonly string[]; group: string }

export function ImagesPanel({ names, group }: Props) {
  const read = useLoad(`image overview ${group}`, (signal) =>
    ask<ImageOverview>('GET', `/registry/v2/imageOverview/${group}`, { signal }),
  )
  const link = { text: overviewWords.allRepositories, href: paths.group(names, 'repositories') }
  return (
    <>
      <Panel title={overviewWords.imagesPanel} link={link}>
        <Shown of={read}>
          {(found) =>
            found.examined === 0 ? (
              <Empty>{overviewWords.noImages}</Empty>
            ) : (
              <>
                <Figures found={found} />
                <Worst found={found} />
              </>
            )
          }
        </Shown>
      </Panel>
      {read.data && read.data.examined > 0 && (
        <>
          <Unscanned found={read.data} />
          <Sources found={read.data} />
        </>
      )}
    </>
  )
}

const severities = ['critical', 'high', 'medium', 'low', 'unknown'] as const

function Figures({ found }: { found: ImageOverview }) {
  const { images, clean, notScanned, partial, examined, tags, incomplete } = found
  return (
    <>
      <dl class="figures">
        {severities.map((one) => (
          <div key={one}>
            <dt class={`severity ${one}`}>{words.severities[one]}</dt>
            <dd class={images[one] === 0 ? 'dim' : ''}>{numbers(images[one])}</dd>
          </div>
        ))}
        <div>
          <dt>{overviewWords.withoutFindings}</dt>
          <dd class={clean === 0 ? 'dim' : ''}>{numbers(clean)}</dd>
        </div>
        <div>
          <dt>{words.notScanned}</dt>
          <dd class={notScanned === 0 ? 'dim' : ''}>{numbers(notScanned)}</dd>
        </div>
      </dl>
      <p class="hint">
        {overviewWords.byWorst(examined)} {partial > 0 && overviewWords.partial(partial)}{' '}
        {incomplete && overviewWords.onlyNewestTags(numbers(Number(tags)))}
      </p>
    </>
  )
}

function Worst({ found }: { found: ImageOverview }) {
  if (found.worst.length === 0) return null
  return (
    <Table
      caption={overviewWords.worstImages}
      items={found.worst}
      keyOf={({ repoUid, digest }) => `${repoUid} ${digest}`}
      columns={[
        {
          title: words.image,
          isHead: true,
          cell: ({ path, tag, digest }) => (
            <a data-main href={paths.digest(path.split('/'), digest)}>
              <bdi>
                {path.split('/').slice(1).join('/') || path}:{tag}
              </bdi>
            </a>
          ),
        },
        {
          title: words.vulnerabilities,
          cell: ({ path, digest, vulnerabilities }) => (
            <FindingsStrip counts={vulnerabilities} href={paths.digest(path.split('/'), digest)} />
          ),
        },
      ]}
    />
  )
}

/** Shown only if images were not scanned completely. */
function Unscanned({ found: { reasons } }: { found: ImageOverview }) {
  if (reasons.length === 0) return null
  return (
    <Panel title={overviewWords.notScannedTitle}>
      <ul class="plain rows">
        {reasons.map(({ text, images }) => (
          <li key={text}>
            <bdi>{text}</bdi>
            <span class="dim">{overviewWords.imageCount(images)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}

function Sources({ found: { sources } }: { found: ImageOverview }) {
  return (
    <Panel title={words.dataSources}>
      {sources.length === 0 ? (
        <p class="dim">{overviewWords.noSourceCompared}</p>
      ) : (
        <ul class="plain rows">
          {sources.map(({ name, fetchTime, problem }) => (
            <li key={name}>
              <span>
                <bdi>{name}</bdi> {problem !== '' && <Badge kind="warn">{overviewWords.outdated}</Badge>}
                {problem !== '' && (
                  <span class="hint">
                    <bdi>{problem}</bdi>
                  </span>
                )}
              </span>
              <span class="dim">
                <Ago at={fetchTime} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </Panel>
  )
}
