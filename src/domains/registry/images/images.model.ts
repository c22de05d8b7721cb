import { jsonProblem } from '#lib/json/json-limits.ts'

export const imageType = 'registry.pinfold.dev/Image'

/** Architecture for requests that do not name one. */
export const defaultArchitecture = 'amd64'

/** Largest image configuration that is read. Configurations have some kilobytes. */
export const maxConfigBytes = 4 * 1024 * 1024
/** JSON limits of a configuration: nesting depth, and total of object members and array elements. */
export const configLimits = { depth: 32, members: 20_000 }

/** Largest SBOM in a response. Clients can pull larger SBOMs from the registry. */
export const maxSbomAnswer = 8 * 1024 * 1024

/** Limits for one request about an image: number and total bytes of the manifests and configurations that it reads. */
export const imageWalk = { steps: 4500, bytes: 32 * 1024 * 1024 }

/** Runtime configuration in the terms of the OCI image specification. */
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

/** Reads a configuration as it was pushed. Members of the wrong type are ignored. */
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

/** Facts about the build of an image, from its configuration. `history` has the build steps from the base to the top. */
export type BuildInfo = {
  created: string
  author: string
  history: { command: string; isEmpty: boolean }[]
}

/** Most characters of the command of a build step that are shown. */
const maxCommand = 4096

/** Reads the facts about the build of an image. Members of the wrong type are ignored. */
export function buildInfoOf(bytes: Uint8Array): BuildInfo {
  const document = membersOf(parseConfig(bytes))
  const history = Array.isArray(document.history) ? document.history.map(membersOf) : []
  return {
    created: textOf(document.created),
    author: textOf(document.author),
    history: history.map((step) => ({
      command: textOf(step.created_by).slice(0, maxCommand),
      isEmpty: step.empty_layer === true,
    })),
  }
}

/** Platform of an image, such as `linux/arm/v7`. Empty if the configuration has none. */
export function platformOfConfig(bytes: Uint8Array): string {
  const { os, architecture, variant } = membersOf(parseConfig(bytes))
  const parts = [textOf(os), textOf(architecture), textOf(variant)]
  return parts[0] === '' || parts[1] === '' ? '' : parts.filter(Boolean).join('/')
}

/** Parses a configuration. Returns undefined if the text is not JSON, or if it exceeds the limits. */
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
