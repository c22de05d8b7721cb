// Location of a bundle of vulnerability data: a repository of a registry, or a folder in the OCI image layout.
import { copyFile, mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { sha256Pattern } from '#lib/digest.ts'
import { componentPattern, isTagName, maxPathLength } from '#lib/oci-names.ts'
import {
  type BundleContent,
  bundleLimits,
  bundleType,
  type Descriptor,
  digestOf,
  manifestType,
} from '#sources/bundle.ts'
import { listAt, objectAt, parseJson, WrongRecord } from '#sources/values.ts'
import { usageError } from '../framework/cli-error.ts'
import { type Credentials, repositoryAt } from './registry-client.ts'

export type BundleLocation = BundleContent & {
  /** URL without credentials, for messages and for the stored state of a data source. */
  url: string
  manifest(): Promise<Buffer>
  putDocument(content: Buffer): Promise<void>
  putLayer(layer: Descriptor, file: string, sent: (bytes: number) => void): Promise<void>
  /** Writes the manifest. Called last, when all content that the manifest names is stored. */
  putManifest(content: Buffer): Promise<void>
}

/**
 * Opens a location. A text that starts like a path is a folder; any other text is the name of a repository. Throws CliError for
 * anything else.
 */
export async function bundleLocation(
  text: string,
  credentialsFor: (registry: string) => Promise<Credentials | undefined>,
): Promise<BundleLocation> {
  if (/^(?:oci:|\.{0,2}\/|\.{1,2}$)/.test(text)) return layoutAt(resolve(text.replace(/^oci:/, '')))
  const [, registry = '', path = '', tag, digest] = /^([^/@]+)\/([^:@]+)(?::([^:@/]*))?(?:@(.*))?$/.exec(text) ?? []
  const named = path.length <= maxPathLength && path.split('/').every((part) => componentPattern.test(part))
  const isHost = /^[a-z0-9.-]+(?::\d{1,5})?$|^\[[0-9a-f:]+\](?::\d{1,5})?$/.test(registry)
  const refers = digest === undefined ? isTagName(tag ?? 'latest') : sha256Pattern.test(digest)
  if (!isHost || !named || !refers) {
    throw usageError(`${text} is not a valid location of a bundle: give HOST/PATH:TAG, or a folder such as ./bundle`)
  }
  return inRegistry(registry, path, digest ?? tag ?? 'latest', await credentialsFor(registry))
}

function inRegistry(
  registry: string,
  path: string,
  reference: string,
  credentials: Credentials | undefined,
): BundleLocation {
  const repository = repositoryAt(registry, path, credentials)
  return {
    url: `oci://${registry}/${path}${reference.includes(':') ? '@' : ':'}${reference}`,
    async manifest() {
      const content = await repository.read(`manifests/${reference}`, bundleLimits.document)
      if (reference.includes(':') && digestOf(content) !== reference) {
        throw new WrongRecord('the manifest does not match its digest')
      }
      return content
    },
    document: ({ digest, size }) => repository.read(`blobs/${digest}`, size),
    layer: ({ digest, size }, file) => repository.download(`blobs/${digest}`, file, size),
    putDocument: (content) => repository.putBlob(digestOf(content), new Blob([new Uint8Array(content)])),
    putLayer: ({ digest }, file, sent) => repository.putFile(digest, file, sent),
    putManifest: (content) => repository.putManifest(reference, content, manifestType),
  }
}

const layoutFile = JSON.stringify({ imageLayoutVersion: '1.0.0' })

/** Folder with one bundle. Writing a new bundle removes the contents of the former one. */
function layoutAt(folder: string): BundleLocation {
  const blobs = join(folder, 'blobs', 'sha256')
  const blobOf = (digest: string) => join(blobs, digest.slice('sha256:'.length))
  const used = new Set<string>()
  const open = async () => {
    await checkLayout(folder)
    await mkdir(blobs, { recursive: true })
  }
  return {
    url: pathToFileURL(folder).href,
    async manifest() {
      const index = await readDocument(join(folder, 'index.json'), bundleLimits.document)
      const [one, ...more] = bundlesIn(index)
      const { digest } = one ?? {}
      if (typeof digest !== 'string' || !sha256Pattern.test(digest) || more.length > 0) {
        throw new WrongRecord('the folder does not contain exactly one bundle')
      }
      const content = await readDocument(blobOf(digest), bundleLimits.document)
      if (digestOf(content) !== digest) throw new WrongRecord('the manifest does not match its digest')
      return content
    },
    document: ({ digest, size }) => readDocument(blobOf(digest), size),
    async layer({ digest, size }, file) {
      const found = await stat(blobOf(digest)).catch(() => undefined)
      if (found?.size !== size) throw new WrongRecord('the layer is missing, or has another length')
      await copyFile(blobOf(digest), file)
    },
    async putDocument(content) {
      await open()
      used.add(digestOf(content))
      await replace(blobOf(digestOf(content)), content)
    },
    async putLayer({ digest }, file) {
      await open()
      used.add(digest)
      const fresh = `${blobOf(digest)}.new`
      await copyFile(file, fresh)
      await rename(fresh, blobOf(digest))
    },
    async putManifest(content) {
      await this.putDocument(content)
      const described = {
        mediaType: manifestType,
        artifactType: bundleType,
        digest: digestOf(content),
        size: content.length,
      }
      const named = { ...described, annotations: { 'org.opencontainers.image.ref.name': 'latest' } }
      await replace(join(folder, 'oci-layout'), layoutFile)
      await replace(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [named] }))
      const old = (await readdir(blobs)).filter((name) => /^[0-9a-f]{64}$/.test(name) && !used.has(`sha256:${name}`))
      for (const name of old) await rm(join(blobs, name))
    },
  }
}

/** Replaces the file. A concurrent reader gets either the old or the new content. */
async function replace(file: string, content: Buffer | string): Promise<void> {
  await writeFile(`${file}.new`, content)
  await rename(`${file}.new`, file)
}

async function readDocument(file: string, most: number): Promise<Buffer> {
  const found = await stat(file).catch(() => undefined)
  if (!found?.isFile() || found.size > most)
    throw new WrongRecord('the folder is not a bundle, or one of its files is missing')
  return readFile(file)
}

function bundlesIn(index: Buffer) {
  return listAt(objectAt(parseJson(index.toString('utf8')), 'index.json').manifests, 'manifests').flatMap((one, i) => {
    const described = objectAt(one, `manifests[${i}]`)
    return described.artifactType === undefined || described.artifactType === bundleType ? [described] : []
  })
}

/** Throws if the folder contains files that do not belong to a bundle. */
async function checkLayout(folder: string): Promise<void> {
  const names = await readdir(folder).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  const rest = names.filter((name) => !/^(?:blobs|oci-layout(?:\.new)?|index\.json(?:\.new)?)$/.test(name))
  const index = names.includes('index.json') ? await readFile(join(folder, 'index.json')) : undefined
  const listed = index ? listAt(objectAt(parseJson(index.toString('utf8')), 'index.json').manifests, 'manifests') : []
  const others = listed.filter((one) => objectAt(one, 'manifests').artifactType !== bundleType)
  if (rest.length > 0 || others.length > 0)
    throw new WrongRecord('the folder contains other files than a bundle; give an empty folder or a new one')
}
