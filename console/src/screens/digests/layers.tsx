// Configuration of an image, and its layers with the build steps that created them.
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { ask, Refusal } from '../../data/api.ts'
import type { ImageLayers } from '../../data/types.ts'
import { useLoad } from '../../ui/load.ts'
import { Empty, Shown } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { bytes, Digest, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { words } from '../../words.ts'

type Props = { repo: string; digest: string; architecture: string }

export function Layers({ repo, digest, architecture }: Props) {
  const read = useLoad(`layers ${repo} ${digest} ${architecture}`, (signal) => {
    const query = { architecture }
    return ask<ImageLayers>('GET', `/registry/v2/repos/${repo}/digests/${digest}/layers`, { query, signal })
  })
  if (read.error instanceof Refusal && read.error.status === 404) return <Empty>{digestWords.noLayers}</Empty>
  return (
    <Shown of={read}>
      {(image) => (
        <>
          {image.architectures.length > 1 && (
            <Tabs
              isSegmented
              label={digestWords.architecture}
              tabs={image.architectures.map((one) => ({
                label: one,
                href: paths.with(here(), { architecture: one }),
                isNow: one === image.architecture,
              }))}
            />
          )}
          <h2>{digestWords.configuration}</h2>
          <Configuration image={image} />
          <h2>{digestWords.layers}</h2>
          <Table
            caption={digestWords.layers}
            items={image.steps.map((step, i) => ({ ...step, number: i + 1 }))}
            keyOf={({ number }) => String(number)}
            columns={[
              {
                title: digestWords.command,
                isHead: true,
                cell: ({ command }) => (
                  <code class="command">{command === '' ? digestWords.noCommand : shortened(command)}</code>
                ),
              },
              { title: words.digest, cell: (step) => <Digest of={step.digest} /> },
              {
                title: words.size,
                isNumber: true,
                cell: (step) => (step.digest === '' ? <span class="dim">–</span> : bytes(Number(step.size))),
              },
            ]}
          />
        </>
      )}
    </Shown>
  )
}

/** Command of a build step without the shell that BuildKit and Docker put before it. */
const shortened = (command: string): string => command.replace(/^\/bin\/sh -c (?:#\(nop\) +)?/, '')

function Configuration({ image }: { image: ImageLayers }) {
  const labels = Object.entries(image.labels)
  const lines: [name: string, values: readonly string[]][] = [
    [digestWords.entrypoint, image.entrypoint.length > 0 ? [JSON.stringify(image.entrypoint)] : []],
    [digestWords.cmd, image.cmd.length > 0 ? [JSON.stringify(image.cmd)] : []],
    [digestWords.user, [image.user || digestWords.rootUser]],
    [digestWords.workingDir, [image.workingDir]],
    [digestWords.ports, image.exposedPorts],
    [digestWords.volumes, image.volumes],
    [digestWords.stopSignal, [image.stopSignal]],
    [digestWords.imageAuthor, [image.author]],
    [digestWords.environment, image.env],
    [digestWords.labels, labels.map(([name, value]) => `${name}=${value}`)],
  ]
  return (
    <dl class="facts">
      <div>
        <dt>{digestWords.built}</dt>
        <dd>
          <Time at={Number.isNaN(Date.parse(image.created)) ? undefined : image.created} />
        </dd>
      </div>
      {lines.map(([name, values]) => {
        const shown = values.filter((one) => one !== '')
        return (
          shown.length > 0 && (
            <div key={name}>
              <dt>{name}</dt>
              {shown.map((value) => (
                <dd key={value}>
                  <code>
                    <bdi>{value}</bdi>
                  </code>
                </dd>
              ))}
            </div>
          )
        )
      })}
    </dl>
  )
}
