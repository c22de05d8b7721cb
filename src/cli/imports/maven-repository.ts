// Reader of the versions of an artifact in a Maven repository: https://maven.apache.org/ref/current/maven-repository-metadata/
import { XMLParser, XMLValidator } from 'fast-xml-parser'
import { WrongValue } from '../framework/json-values.ts'
import type { LibraryRecord } from './library-record.ts'

const versionPath = 'metadata.versioning.versions.version'
const maxDepth = 20

// Entities are not expanded, so a small text cannot become a large one.
const parser = new XMLParser({
  processEntities: false,
  parseTagValue: false,
  ignoreAttributes: true,
  ignoreDeclaration: true,
  ignorePiTags: true,
  maxNestedTags: maxDepth,
  isArray: (_, path) => path === versionPath,
})

/** Path of the metadata of `group:artifact`, relative to the URL of the repository. */
export function metadataPath(name: string): string {
  const [group = '', artifact = ''] = name.split(':')
  return [...group.split('.'), artifact, 'maven-metadata.xml'].map(encodeURIComponent).join('/')
}

/** Versions in `maven-metadata.xml`, which has no sizes and times. */
export function readMetadata(name: string, text: string): LibraryRecord {
  const { groupId, artifactId, versioning } = metadataOf(text)
  const [group, artifact] = name.split(':')
  if (groupId !== undefined && groupId !== group) throw new WrongValue('groupId', `must be ${group}`)
  if (artifactId !== undefined && artifactId !== artifact) {
    throw new WrongValue('artifactId', `must be ${artifact}`)
  }
  const versions = (versioning as Metadata | undefined)?.versions as { version?: unknown[] } | undefined
  const listed = (versions?.version ?? []).map((version, i) => {
    // A version with an ampersand is invalid, so entities need not be decoded.
    if (typeof version !== 'string' || version === '' || version.includes('&')) {
      throw new WrongValue(`versioning.versions.version[${i}]`, 'must be a version')
    }
    return { version }
  })
  return { ecosystem: 'ECOSYSTEM_JAVA', name, versions: listed }
}

type Metadata = Record<string, unknown>

function metadataOf(text: string): Metadata {
  if (/<!DOCTYPE/i.test(text)) throw new WrongValue('', 'must not have a document type')
  let metadata: unknown
  try {
    if (XMLValidator.validate(text) === true) metadata = (parser.parse(text) as Metadata).metadata
  } catch {
    // The message of the XML parser is not shown, since it quotes the text.
  }
  if (typeof metadata !== 'object' || metadata === null) throw new WrongValue('', 'is not the metadata of an artifact')
  return metadata as Metadata
}
