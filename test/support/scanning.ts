// Pushes images and reads sources about their packages, as the server does it in the background.
import type { App } from '#app.ts'
import { readImages } from '#domains/registry/images/read-images.job.ts'
import { matchPackages } from '#domains/scanning/findings/match.job.ts'
import { beginSource, finishSource, putRecords, type SourceRecord } from '#domains/scanning/records/records.service.ts'
import { runDuty } from './background-jobs.ts'
import { pushLayers } from './images.ts'
import type { LayerEntries } from './layers.ts'
import type { TestRegistry } from './registry.ts'

/** A layer with a distribution and its apk packages, each as `name version [origin]`. */
export function apkLayer(id: string, version: string, lines: readonly string[]): LayerEntries {
  return {
    'etc/os-release': `ID=${id}\nVERSION_ID=${version}\n`,
    'lib/apk/db/installed': lines
      .map((line) => line.split(' '))
      .map(([name, of, origin = name]) => `P:${name}\nV:${of}\nA:x86_64\no:${origin}\n`)
      .join('\n'),
  }
}

/** A package of Python as it is installed. */
export const pythonPackage = (name: string, version: string): LayerEntries => ({
  [`usr/lib/python3.12/site-packages/${name}-${version}.dist-info/METADATA`]: `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`,
})

/** Pushes an image, has it read and compared; answers with its digest. */
export async function pushAndScan(
  registry: TestRegistry,
  repo: string,
  layer: LayerEntries | Buffer,
  tag?: string,
): Promise<string> {
  const pusher = await registry.registryAs(registry.pusher.uid)
  const { digest } = await pushLayers(pusher, repo, [layer], tag)
  await runDuty(registry.app, readImages)
  await runDuty(registry.app, matchPackages)
  return digest
}

/** A record about one package, fixed in a version; without one it is not fixed. */
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

/** Reads a source of one ecosystem, or makes it fail with an error, and runs the comparisons that follow. */
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
  await runDuty(app, matchPackages)
}
