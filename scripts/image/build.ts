// `npm run image [-- --out DIR]`: builds the container image for amd64 and arm64 as an OCI layout. Needs no daemon and no root
// rights, but npm, git, apt-get and dpkg-deb. The same input gives the same digests. `--update-base` takes the newest system
// packages and writes them to base.json.
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { gzipSync } from 'node:zlib'
import { baseEntries, userId } from './base.ts'
import { type Entry, tarOf } from './entries.ts'
import { type Descriptor, digestOf, openLayout, types } from './layout.ts'
import { type Architecture, platforms } from './platforms.ts'
import { productEntries } from './product.ts'
import { type Ingredients, provenanceOf, sbomOf } from './records.ts'

const root = fileURLToPath(new URL('../..', import.meta.url))
const { values } = parseArgs({
  options: {
    out: { type: 'string', default: join(root, 'build/image') },
    sources: { type: 'string', default: '/etc/apt/sources.list.d/debian.sources' },
    'update-base': { type: 'boolean', default: false },
  },
})
const time = new Date(Number(process.env.SOURCE_DATE_EPOCH ?? 0) * 1000)
const created = time.toISOString().replace('.000Z', 'Z')

type Layout = ReturnType<typeof openLayout>

function git(...args: string[]): string {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}

function configOf(architecture: Architecture, version: string, diffIds: string[], names: string[]): object {
  const program = ['/usr/local/bin/pinfold']
  return {
    created,
    architecture,
    os: 'linux',
    config: {
      User: `${userId}:${userId}`,
      ExposedPorts: { '8080/tcp': {} },
      Env: [
        'PATH=/usr/local/bin',
        // Common variable of container images. The program then assumes that its output is stored, even on a terminal.
        'container=oci',
        'PINFOLD_LISTEN=0.0.0.0:8080',
        'PINFOLD_DATA=/var/lib/pinfold',
        // SQLite needs a folder for temporary files, and the root file system may be read-only.
        'TMPDIR=/var/lib/pinfold',
        'MALLOC_ARENA_MAX=2',
        'MALLOC_MMAP_THRESHOLD_=131072',
        'MALLOC_TRIM_THRESHOLD_=1048576',
        'NODE_OPTIONS=--max-semi-space-size=8 --v8-pool-size=1',
      ],
      Entrypoint: program,
      Cmd: ['serve'],
      Volumes: { '/var/lib/pinfold': {} },
      WorkingDir: '/var/lib/pinfold',
      StopSignal: 'SIGTERM',
      Labels: { 'org.opencontainers.image.version': version, 'org.opencontainers.image.licenses': 'Apache-2.0' },
      // Health check of Docker images. It is not part of the OCI specification, but docker and podman use it. Kubernetes has its
      // own probes.
      Healthcheck: {
        Test: ['CMD', ...program, 'health'],
        Interval: 30e9,
        Timeout: 5e9,
        StartPeriod: 30e9,
        Retries: 3,
      },
    },
    rootfs: { type: 'layers', diff_ids: diffIds },
    history: names.map((name) => ({ created, created_by: `scripts/image: ${name}` })),
  }
}

async function buildFor(architecture: Architecture, layout: Layout, work: string): Promise<Descriptor[]> {
  const base = baseEntries(architecture, { work, sources: values.sources, update: values['update-base'] })
  const product = await productEntries(root, architecture, work)
  const parts: [string, Entry[]][] = [
    ['system', base.entries],
    ['node', product.node],
    ['pinfold', product.own],
  ]
  const diffIds: string[] = []
  const layers: Descriptor[] = []
  for (const [, entries] of parts) {
    const tar = await tarOf(entries, time)
    diffIds.push(digestOf(tar))
    layers.push(layout.put(types.layer, gzipSync(tar)))
  }
  const names = parts.map(([name]) => name)
  const config = layout.putJson(types.config, configOf(architecture, product.version, diffIds, names))
  const manifest = layout.putJson(types.manifest, {
    schemaVersion: 2,
    mediaType: types.manifest,
    config,
    layers,
    annotations: { 'org.opencontainers.image.version': product.version },
  })
  const { version, packages } = product
  const given: Ingredients = { architecture, version, debian: base.packages, npm: packages }
  const isClean = git('status', '--porcelain') === ''
  const commit = isClean ? git('rev-parse', 'HEAD') : undefined
  return [
    { ...manifest, platform: { os: 'linux', architecture } },
    layout.attach(manifest, types.sbom, sbomOf(given, manifest.digest, created)),
    layout.attach(manifest, types.provenance, provenanceOf(given, manifest.digest, diffIds.at(-1)!, commit)),
  ]
}

const work = mkdtempSync(join(tmpdir(), 'pinfold-image-'))
try {
  rmSync(values.out, { recursive: true, force: true })
  const layout = openLayout(values.out)
  const built: Descriptor[][] = []
  for (const architecture of Object.keys(platforms) as Architecture[]) {
    built.push(await buildFor(architecture, layout, work))
  }
  const manifests = built.map(([manifest]) => manifest!)
  const index = layout.putJson(types.index, { schemaVersion: 2, mediaType: types.index, manifests })
  const named = { ...index, annotations: { 'org.opencontainers.image.ref.name': 'latest' } }
  // Clients find the images through the index. Their referrers are found only if index.json of the layout names them.
  layout.close([named, ...built.flatMap(([, ...attached]) => attached)])
  for (const { digest, platform } of manifests) console.log(`${platform!.os}/${platform!.architecture} ${digest}`)
  console.log(`index ${index.digest}`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
