// Writer of an OCI image layout.
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

export type Descriptor = {
  mediaType: string
  digest: string
  size: number
  artifactType?: string
  platform?: { os: string; architecture: string }
  annotations?: Record<string, string>
}

export const types = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  empty: 'application/vnd.oci.empty.v1+json',
  sbom: 'application/spdx+json',
  provenance: 'application/vnd.in-toto+json',
}

export function digestOf(content: Buffer): string {
  return `sha256:${createHash('sha256').update(content).digest('hex')}`
}

export function openLayout(folder: string) {
  const blobs = join(folder, 'blobs/sha256')
  mkdirSync(blobs, { recursive: true })
  const put = (mediaType: string, content: Buffer): Descriptor => {
    const digest = digestOf(content)
    writeFileSync(join(blobs, digest.slice('sha256:'.length)), content)
    return { mediaType, digest, size: content.length }
  }
  const putJson = (mediaType: string, value: object) => put(mediaType, Buffer.from(JSON.stringify(value)))
  return {
    put,
    putJson,
    /** Adds a document with a manifest as its subject, so that clients find it as a referrer. */
    attach(subject: Descriptor, artifactType: string, document: object): Descriptor {
      const { mediaType, digest, size } = subject
      const config = put(types.empty, Buffer.from('{}'))
      const layers = [putJson(artifactType, document)]
      const manifest = { schemaVersion: 2, mediaType: types.manifest, artifactType, config, layers }
      return { ...putJson(types.manifest, { ...manifest, subject: { mediaType, digest, size } }), artifactType }
    },
    close(manifests: Descriptor[]): void {
      writeFileSync(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}')
      writeFileSync(join(folder, 'index.json'), JSON.stringify({ schemaVersion: 2, mediaType: types.index, manifests }))
    },
  }
}
