// Command that packs the data of vulnerability sources into one OCI artifact, for servers that cannot reach the sources.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createOutgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { jsonText, plain } from '#lib/terminal/plain-text.ts'
import { bundleLimits, bundleOf, digestOf, type PackedSource, writeLayer } from '#sources/bundle.ts'
import type { Source } from '#sources/definitions.ts'
import { fetchSource } from '#sources/fetch.ts'
import { WrongRecord } from '#sources/values.ts'
import { exitCodes, failure } from '../framework/cli-error.ts'
import { type Command, outputOption } from '../framework/command.ts'
import { progressOf } from '../framework/progress.ts'
import { type Problem, printProblems } from '../imports/import-batches.ts'
import { type BundleLocation, bundleLocation } from './bundle-locations.ts'
import { messageOf, registryCredentials, sourceOptions, sourcesOf } from './source-options.ts'

export const vulnerabilitiesPack: Command = {
  details: `Reads the data sources of PINFOLD_VULNERABILITY_SOURCES, or those of --source, from their own addresses or a mirror. Writes one OCI
artifact with a layer for each source. The target is a folder such as ./bundle (an OCI image layout), or a repository such as
registry.example.com/acme/vulnerabilities:latest. Needs no Pinfold server.

Leaves out data sources whose license forbids redistribution, and lists them. Leaves out sources that cannot be read and
invalid records; the exit code is then 1. Writes nothing if no source is left.

The password for a registry comes from Docker's configuration file. If pinfold is its credential helper there (pinfold docker
configure), a token of your session is used.`,
  arguments: [{ name: '<target>', summary: 'Folder, or repository as HOST/PATH:TAG' }],
  options: [...sourceOptions, outputOption],
  async run(terminal, options) {
    const { sources, way } = sourcesOf(terminal, options)
    const forbidden = sources.filter(({ mayBundle }) => !mayBundle)
    for (const { name, licence } of forbidden) {
      terminal.say(`pinfold: ${plain(name)} was left out: its license (${licence}) forbids redistribution`)
    }
    const outgoing = createOutgoing(way)
    const location = await bundleLocation(String(options.target), (registry) =>
      registryCredentials(terminal, options, registry),
    )
    const folder = await mkdtemp(join(tmpdir(), 'pinfold-pack-'))
    const packed: PackedSource[] = []
    const problems: Problem[] = []
    const wrong = (file: string, description: string) => problems.push({ file, line: 0, field: '', description })
    try {
      for (const source of sources.filter(({ mayBundle }) => mayBundle)) {
        terminal.status?.(`${source.name} …`)
        const before = problems.length
        try {
          const file = join(folder, `${packed.length}.layer`)
          const made = await packOne(source, { outgoing, folder, file }, (at, problem) =>
            wrong(`${source.name}/${at}`, problem),
          )
          packed.push({ ...made, complete: made.complete && problems.length === before })
          {
            using bar = progressOf(terminal, `bytes of ${source.name} pushed`, made.layer.size)
            await location.putLayer(made.layer, file, (bytes) => bar.at(bytes))
          }
          await rm(file)
        } catch (error) {
          if (!(error instanceof OutgoingError) && !(error instanceof WrongRecord)) throw error
          wrong(source.name, `was left out: ${messageOf(error)}`)
        }
        terminal.status?.('')
      }
      printProblems(terminal, problems)
      if (packed.length === 0)
        throw failure(
          'nothing was written, because no data source is left to pack; name sources with --source, or set PINFOLD_VULNERABILITY_SOURCES',
        )
      const digest = await writeBundle(location, packed)
      if (options.output === 'json') {
        terminal.print(jsonText({ place: location.url, digest, sources: packed, refused: problems.length }))
      } else {
        for (const { name, records, layer } of packed)
          terminal.print(plain(`${name}: ${records} records, ${layer.size} bytes`))
        terminal.print(plain(`${location.url}: ${digest}`))
      }
      return problems.length > 0 ? exitCodes.failed : exitCodes.ok
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  },
}

type Pack = { outgoing: ReturnType<typeof createOutgoing>; folder: string; file: string }

async function packOne(
  source: Source,
  { outgoing, folder, file }: Pack,
  onProblem: (at: string, problem: string) => void,
): Promise<PackedSource> {
  const from = await mkdtemp(join(folder, 'source-'))
  try {
    const fetched = await fetchSource(source, { outgoing, folder: from, fingerprint: '', buildTime: '' })
    const { layer, records } = await writeLayer(fetched.records, file, ({ at, problem }) => onProblem(at, problem))
    if (layer.size > bundleLimits.layer) throw new WrongRecord(`the layer has more than ${bundleLimits.layer} bytes`)
    const { name, licence } = source
    return { name, licence, buildTime: fetched.end().buildTime, records, complete: fetched.complete, layer }
  } finally {
    await rm(from, { recursive: true, force: true })
  }
}

async function writeBundle(location: BundleLocation, packed: readonly PackedSource[]): Promise<string> {
  const { config, manifest } = bundleOf(packed)
  try {
    await location.putDocument(config)
    await location.putManifest(manifest)
  } catch (error) {
    throw error instanceof WrongRecord ? failure(`${location.url}: ${error.message}`) : error
  }
  return digestOf(manifest)
}
