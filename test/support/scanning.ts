// Pushes images and reads data sources about their packages, as the background jobs of a server do.
import type { App } from '#app.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { beginSource, finishSource, putRecords, type SourceRecord } from '#domains/scanning/records/records.service.ts'
import { runJob } from './background-jobs.ts'
import { pushLayers } from './images.ts'
import type { LayerEntries } from './layers.ts'
import type { TestRegistry } from './registry.ts'

/** Layer with a distribution and its apk packages. Each package is `name version [origin]`. */
export function apkLayer(id: string, version: string, lines: readonly string[]): LayerEntries {
  return {
    'etc/os-release': `ID=${id}\nVERSION_ID=${version}\n`,
    'lib/apk/db/installed': lines
      .map((line) => line.split(' '))
      .map(([name, of, origin = name]) => `P:${name}\nV:${of}\nA:x86_64\no:${origin}\n`)
      .join('\n'),
  }
}

/** Files of an installed Python package. */
export const pythonPackage = (name: string, version: string): LayerEntries => ({
  [`usr/lib/python3.12/site-packages/${name}-${version}.dist-info/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
})

/** Pushes an image, and waits until it was read and compared. Returns its digest. */
export async function pushAndScan(
  registry: TestRegistry,
  repo: string,
  layer: LayerEntries | Buffer,
  tag?: string,
): Promise<string> {
  const pusher = await registry.registryAs(registry.pusher.uid)
  const { digest } = await pushLayers(pusher, repo, [layer], tag)
  await runJob(registry.app, readImages)
  await runJob(registry.app, matchPackages)
  return digest
}

/** Record about one package, with the version that fixes the vulnerability. Without a version, there is no fix. */
export function recordAbout(
  id: string,
  ecosystem: string,
  name: string,
  fixed: string,
  more: Partial<SourceRecord> = {},
): SourceRecord {
  const events = [{ introduced: '0' }, ...(fixed === '' ? [] : [{ fixed }])]
  return {
    id,
    ...{ aliases: [], upstream: [], summary: '', publishTime: '', modifyTime: '', withdrawTime: '' },
    ...{ severities: [], references: [] },
    affected: [
      {
        ecosystem,
        name,
        ranges: [{ type: 'ECOSYSTEM', events }],
        versions: [],
        state: 'affected',
        severity: 'high',
        qualifiers: {},
      },
    ],
    ...more,
  }
}

/** Reads a data source of one ecosystem, or lets the read fail with an error. Then runs all comparisons. */
export async function readSource(
  app: App,
  ecosystem: string,
  records: readonly SourceRecord[],
  error = '',
  name = `osv/${ecosystem}`,
): Promise<void> {
  const work = { app, log: app.log }
  const run = await beginSource(work, { name, url: '', licence: 'MIT', ecosystems: [ecosystem] })
  await putRecords(work, run, records)
  const buildTime = app.clock().toISOString()
  await finishSource(work, run, { fingerprint: '', buildTime, complete: false, error })
  await runJob(app, matchPackages)
}
