import { jsonProblem } from '#lib/json/json-limits.ts'

export const imageType = 'registry.pinfold.dev/Image'

/** What is meant where a request names none. */
export const defaultArchitecture = 'amd64'

/** Configurations are some kilobytes; what is larger is something else. */
export const maxConfigBytes = 4 * 1024 * 1024
/** Depth, and members of objects and elements of arrays together. */
export const configLimits = { depth: 32, members: 20_000 }

/** The largest SBOM that an answer holds; larger ones can be pulled. */
export const maxSbomAnswer = 8 * 1024 * 1024

/** How many manifests and configurations one question about an image reads, and how much they hold together. */
export const imageWalk = { steps: 4500, bytes: 32 * 1024 * 1024 }

/** How an image is run, in the terms of the OCI image specification. */
export type ImageConfig = {
  user: string
  exposedPorts: string[]
  env: string[]
  entrypoint: string[]
  cmd: string[]
  volumes: string[]
  workingDir: string
  labels: Record<string, string>
  stopSignal: string
}

/** Reads what was pushed as a configuration, which may be anything; members of the wrong type are passed over. */
export function imageConfigOf(bytes: Uint8Array): ImageConfig {
  const document = parseConfig(bytes)
  const config = membersOf(membersOf(document).config)
  const isText = ([, value]: [string, unknown]) => typeof value === 'string'
  return {
    user: textOf(config.User),
    exposedPorts: Object.keys(membersOf(config.ExposedPorts)),
    env: textsOf(config.Env),
    entrypoint: textsOf(config.Entrypoint),
    cmd: textsOf(config.Cmd),
    volumes: Object.keys(membersOf(config.Volumes)),
    workingDir: textOf(config.WorkingDir),
    labels: Object.fromEntries(Object.entries(membersOf(config.Labels)).filter(isText)) as Record<string, string>,
    stopSignal: textOf(config.StopSignal),
  }
}

/** A configuration that is above the limits, or no JSON, has no members. */
export function parseConfig(bytes: Uint8Array): unknown {
  if (jsonProblem(bytes, configLimits)) return undefined
  try {
    return JSON.parse(new TextDecoder().decode(bytes))
  } catch {
    return undefined
  }
}

function membersOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
const textsOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []

export const packageType = 'registry.pinfold.dev/Package'
