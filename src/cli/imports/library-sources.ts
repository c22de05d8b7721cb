// Sources from which libraries are copied: an index of Python packages, or a Maven repository.
import { type Outgoing, OutgoingError } from '#lib/net/outgoing.ts'
import { projectName, projectNamePattern } from '#versions/pep503.ts'
import { usageError } from '../framework/cli-error.ts'
import { WrongValue } from '../framework/json-values.ts'
import type { LibraryRecord } from './library-record.ts'
import { metadataPath, readMetadata } from './maven-repository.ts'
import { indexFormat, readProject, readProjects } from './python-index.ts'

export type LibrarySource = {
  /** Returns the normalized spelling of a name. Throws CliError if the name is invalid. */
  nameOf(given: string): string
  /** Returns all names. Undefined if the source has no list of names. */
  listNames: (() => Promise<string[]>) | undefined
  /** Path of the data of a library in the source, for messages. */
  pathOf(name: string): string
  /** Reads the versions of a library. Throws WrongValue or OutgoingError. */
  fetch(name: string): Promise<LibraryRecord>
}

/** Maximum sizes in bytes: of the list of all names, and of the data of one library. */
const listLimits = { timeoutMs: 120_000, maxBytes: 128 * 1024 * 1024 }
const projectLimits = { timeoutMs: 30_000, maxBytes: 32 * 1024 * 1024 }
const metadataLimits = { timeoutMs: 30_000, maxBytes: 2 * 1024 * 1024 }

const groupAndArtifact = /^[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*:[A-Za-z0-9_.-]*[A-Za-z0-9_-][A-Za-z0-9_.-]*$/

/** URL of a source from an option, with a slash at its end. */
export function sourceUrl(text: string, option: string): URL {
  const url = URL.parse(text)
  const wrong = (description: string) => usageError(`${option} ${description}`)
  if (!url || !/^https?:$/.test(url.protocol)) throw wrong('must be an https:// URL')
  if (url.username !== '' || url.password !== '') {
    throw wrong('must not contain a user name or password; give a file with --authorization instead')
  }
  if (url.search !== '' || url.hash !== '') throw wrong('must not have a query or a fragment')
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

export function pythonIndex(base: URL, outgoing: Outgoing, authorization: string): LibrarySource {
  const headers = { ...headersOf(authorization), accept: indexFormat }
  const ask = async (url: URL, limits: { timeoutMs: number; maxBytes: number }) =>
    jsonOf(await outgoing.getText(url.href, headers, limits))
  const urlOf = (name: string) => new URL(`${encodeURIComponent(name)}/`, base)
  return {
    nameOf(given) {
      if (!projectNamePattern.test(given))
        throw usageError(`${given} is not the name of a Python package: names have letters, digits, ., _ and -`)
      return projectName(given)
    },
    listNames: async () => readProjects(await ask(base, listLimits)),
    pathOf: (name) => urlOf(name).pathname,
    fetch: async (name) => readProject(name, await ask(urlOf(name), projectLimits)),
  }
}

export function mavenRepository(base: URL, outgoing: Outgoing, authorization: string): LibrarySource {
  const headers = { ...headersOf(authorization), accept: 'application/xml, text/xml' }
  const urlOf = (name: string) => new URL(metadataPath(name), base)
  return {
    nameOf(given) {
      if (!groupAndArtifact.test(given))
        throw usageError(`${given} is not the name of a Java library: give GROUP:ARTIFACT`)
      return given
    },
    listNames: undefined,
    pathOf: (name) => urlOf(name).pathname,
    fetch: async (name) => readMetadata(name, await outgoing.getText(urlOf(name).href, headers, metadataLimits)),
  }
}

function headersOf(authorization: string): Record<string, string> {
  return authorization === '' ? {} : { authorization }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The message of the JSON parser is not shown, since it quotes the answer.
    throw new OutgoingError('not-json')
  }
}

/**
 * Converts an error to the problem of one library, after which the copy continues. Returns undefined if the error concerns the
 * whole source.
 */
export function problemWith(error: unknown): { field: string; description: string } | undefined {
  if (error instanceof WrongValue) return { field: error.path, description: error.message }
  if (!(error instanceof OutgoingError)) return undefined
  if (error.reason === 'status' && [404, 410, 451].includes(error.status ?? 0)) {
    return { field: '', description: 'the source does not have it' }
  }
  const ofTheAnswer = ['too-large', 'not-json', 'not-text', 'encoding'].includes(error.reason)
  return ofTheAnswer ? { field: '', description: error.message } : undefined
}

/** True if a repeated request may succeed. */
export function mayPass(error: unknown): boolean {
  if (!(error instanceof OutgoingError)) return false
  const { reason, status = 0 } = error
  return reason === 'timeout' || reason === 'unreachable' || (reason === 'status' && (status === 429 || status >= 500))
}
