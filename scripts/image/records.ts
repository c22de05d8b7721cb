// Statements about an image: an SBOM in SPDX 2.3, and SLSA provenance 1. They depend only on the image, so the same image gives
// the same bytes.

import type { NpmPackage } from '../bundle/packages.ts'
import type { DebianPackage } from './base.ts'
import { type Architecture, platforms } from './platforms.ts'

export type Ingredients = { architecture: Architecture; version: string; debian: DebianPackage[]; npm: NpmPackage[] }

type Part = { name: string; version: string; license: string; purl: string; digest?: [string, string] }

function partsOf({ architecture, debian, npm }: Ingredients): Part[] {
  const hex = (integrity: string) => Buffer.from(integrity.replace(/^sha512-/, ''), 'base64').toString('hex')
  const isNode = (name: string) => name === platforms[architecture].node
  const node = npm.filter(({ name }) => isNode(name)).map(({ version }) => version)
  return [
    ...debian.map(
      ({ name, version, sha256 }): Part => ({
        name,
        version,
        license: 'NOASSERTION',
        purl: `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=${architecture}&distro=debian-12`,
        digest: ['SHA256', sha256],
      }),
    ),
    ...node.map((version): Part => ({ name: 'node', version, license: 'MIT', purl: `pkg:generic/node@${version}` })),
    ...npm.map(
      ({ name, version, license, integrity }): Part => ({
        name,
        version,
        license: isNode(name) ? 'MIT' : license,
        purl: `pkg:npm/${name.replace('@', '%40')}@${version}`,
        digest: ['SHA512', hex(integrity)],
      }),
    ),
  ]
}

/** `digest` is the digest of the image's manifest. */
export function sbomOf(given: Ingredients, digest: string, created: string): object {
  const parts = partsOf(given)
  const purl = `pkg:oci/pinfold@${encodeURIComponent(digest)}?arch=${given.architecture}`
  const packages = [{ name: 'pinfold', version: given.version, license: 'Apache-2.0', purl } as Part, ...parts]
  return {
    spdxVersion: 'SPDX-2.3',
    dataLicense: 'CC0-1.0',
    SPDXID: 'SPDXRef-DOCUMENT',
    name: `pinfold-${given.version}-${given.architecture}`,
    documentNamespace: `https://pinfold.dev/spdx/${digest.replace(':', '-')}`,
    creationInfo: { created, creators: ['Tool: pinfold-image'] },
    packages: packages.map(({ name, version, license, purl, digest: checksum }, i) => ({
      SPDXID: `SPDXRef-Package-${i}`,
      name,
      versionInfo: version,
      downloadLocation: 'NOASSERTION',
      filesAnalyzed: false,
      licenseConcluded: 'NOASSERTION',
      licenseDeclared: license,
      copyrightText: 'NOASSERTION',
      ...(checksum ? { checksums: [{ algorithm: checksum[0], checksumValue: checksum[1] }] } : {}),
      externalRefs: [{ referenceCategory: 'PACKAGE-MANAGER', referenceType: 'purl', referenceLocator: purl }],
    })),
    relationships: [
      {
        spdxElementId: 'SPDXRef-DOCUMENT',
        relationshipType: 'DESCRIBES',
        relatedSpdxElement: 'SPDXRef-Package-0',
      },
      ...parts.map((_part, i) => ({
        spdxElementId: 'SPDXRef-Package-0',
        relationshipType: 'CONTAINS',
        relatedSpdxElement: `SPDXRef-Package-${i + 1}`,
      })),
    ],
  }
}

/**
 * `source` is the SHA-256 of the layer with the files of this repository. `commit` is left out if the checkout has uncommitted
 * changes.
 */
export function provenanceOf(given: Ingredients, digest: string, source: string, commit: string | undefined): object {
  return {
    _type: 'https://in-toto.io/Statement/v1',
    subject: [{ name: `pinfold-${given.architecture}`, digest: { sha256: digest.replace('sha256:', '') } }],
    predicateType: 'https://slsa.dev/provenance/v1',
    predicate: {
      buildDefinition: {
        buildType: 'https://pinfold.dev/buildtypes/image/v1',
        externalParameters: { version: given.version, platform: `linux/${given.architecture}` },
        resolvedDependencies: [
          {
            name: 'source',
            digest: { ...(commit ? { gitCommit: commit } : {}), sha256: source.replace('sha256:', '') },
          },
          ...partsOf(given).flatMap(({ purl, digest: of }) =>
            of ? [{ uri: purl, digest: { [of[0].toLowerCase()]: of[1] } }] : [],
          ),
        ],
      },
      runDetails: { builder: { id: 'https://pinfold.dev/builders/scripts-image/v1' } },
    },
  }
}
