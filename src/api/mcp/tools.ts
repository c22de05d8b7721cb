// Tools for agents: the methods of the contract that agents can call, with their names and hints.
import type { DescMethod } from '@bufbuild/protobuf'
import { tool } from '#gen/pinfold/annotations/annotations_pb.ts'
import { snakeCase } from '#lib/fields.ts'
import { readAsset } from '#lib/files/assets.ts'
import { type Endpoint, isStreaming } from '../methods.ts'
import { optionOf } from '../option-of.ts'

/** Hints about a tool, in the spelling of the Model Context Protocol. */
export type Annotations = {
  readOnlyHint: boolean
  destructiveHint: boolean
  idempotentHint: boolean
  openWorldHint: boolean
}

/** Description of a tool. `npm run gen` makes it from the comments and messages of the contract. */
export type ToolText = {
  title: string
  description: string
  inputSchema: object
  outputSchema: object
  annotations: Annotations
}

/** Descriptions of all tools. `version` is the version of this build. */
export type ToolTexts = { version: string; tools: Record<string, ToolText> }

export type Tools = {
  /** Method of the tool with this name. */
  find(name: string): Endpoint | undefined
  /** JSON list of all tools in the order of the contract, and the version of this build. */
  texts(): { version: string; list: string }
}

const file = 'gen/mcp-tools.json'

/** True for methods that are tools: methods of version 2 without streams that the contract does not hide. */
export function isTool({ method, desc }: Pick<Endpoint, 'method' | 'desc'>): boolean {
  return method.version === 'v2' && !isStreaming({ desc }) && !optionOf(desc, tool).hidden
}

/** Name of a tool, such as `list_repos` for ListRepos. */
export function toolName({ name }: DescMethod): string {
  return snakeCase(name.charAt(0).toLowerCase() + name.slice(1))
}

/** Hints of a method. Options that are not set have the defaults of the protocol, which assume the worst case. */
export function annotationsOf(method: DescMethod): Annotations {
  const { readOnly = false, destructive = true, idempotent = false, openWorld = true } = optionOf(method, tool)
  return {
    readOnlyHint: readOnly,
    destructiveHint: destructive && !readOnly,
    idempotentHint: idempotent,
    openWorldHint: openWorld,
  }
}

export function createTools(endpoints: readonly Endpoint[]): Tools {
  const served = endpoints.filter((endpoint) => isTool(endpoint) && endpoint.handler)
  const byName = new Map(served.map((endpoint) => [toolName(endpoint.desc), endpoint]))
  // Read at the first request.
  let known: ReturnType<Tools['texts']> | undefined
  const read = () => {
    const { version, tools } = JSON.parse(readAsset(file).toString()) as ToolTexts
    return { version, list: JSON.stringify([...byName.keys()].map((name) => ({ name, ...tools[name] }))) }
  }
  return {
    find: (name) => byName.get(name),
    texts() {
      known ??= read()
      return known
    },
  }
}
