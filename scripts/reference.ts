// Generator of the reference pages in docs/api. Each service has a page with every method, and with examples that were executed.
import { readFileSync } from 'node:fs'
import {
  createFileRegistry,
  type DescMethod,
  type DescService,
  fromBinary,
  getOption,
  hasOption,
} from '@bufbuild/protobuf'
import { FileDescriptorSetSchema } from '@bufbuild/protobuf/wkt'
import { isTool, toolName } from '#api/mcp/tools.ts'
import { buildEndpoints, type Endpoint } from '#api/methods.ts'
import { services } from '#api/services.ts'
import { resourceFieldOf } from '#api/transcoding/field-mask.ts'
import type { Access } from '#app.ts'
import { event } from '#gen/pinfold/annotations/annotations_pb.ts'
import { codes, reasons, violationTypes } from '#lib/errors.ts'
import { behaviourOf, capabilityName, httpOf } from './openapi-annotations.ts'
import { comments, summaryOf } from './schemas.ts'

type Example = { verb: string; path: string; body?: object; status: number; response: object }

const notice = '<!-- Written by `npm run gen`. -->\n'
const examplesFile = new URL('../test/data/examples.json', import.meta.url)

/** Texts of the pages by file name. `file` is a descriptor set with source information. */
export function referencePages(file: string): Record<string, string> {
  const registry = createFileRegistry(fromBinary(FileDescriptorSetSchema, readFileSync(file)))
  const commentOf = comments(registry)
  const examples = JSON.parse(readFileSync(examplesFile, 'utf8')) as Record<string, Example>
  const endpoints = buildEndpoints(services)

  const methodText = (endpoint: Endpoint): string => {
    const { method, desc } = endpoint
    const comment = commentOf(registry.getService(desc.parent.typeName)!.method[desc.localName]!)
    return `## ${desc.name}

${comment}

${factsOf(endpoint, comment).join('\n')}

${exampleText(endpoint, examples[method.fullName])}`
  }
  const pages = services.map(({ desc }) => {
    const own = endpoints.filter((endpoint) => endpoint.desc.parent === desc)
    const about = commentOf(registry.getService(desc.typeName)!)
    const text = `${notice}
# ${desc.name}

${about}

\`${desc.typeName}\`, defined in \`proto/${desc.file.name}.proto\`. [All services](README.md)

${own.map(methodText).join('\n')}`
    return [pageName(desc), text]
  })
  const summaries = (desc: DescMethod) =>
    summaryOf(commentOf(registry.getService(desc.parent.typeName)!.method[desc.localName]!))
  return Object.fromEntries([['README.md', indexPage(summaries)], ...pages])
}

function pageName({ typeName }: DescService): string {
  return `${typeName.replace(/^pinfold\.(?:platform\.)?/, '')}.md`
}

/** Part of the index in which a service is listed. */
const parts: Record<string, RegExp> = {
  'Version 2': /^pinfold\.platform\.[a-z]+\.v2\./,
  'Both versions: tokens and accounts': /^pinfold\.platform\.(?:auth|oidc)\./,
  'Pinfold extensions': /^pinfold\.control\./,
  'Version 1': /^pinfold\.platform\./,
}

function indexPage(summary: (desc: DescMethod) => string): string {
  let left = services.map(({ desc }) => desc)
  const sections = Object.entries(parts).map(([title, pattern]) => {
    const own = left.filter(({ typeName }) => pattern.test(typeName))
    left = left.filter((desc) => !own.includes(desc))
    const lists = own.map((desc) => {
      const methods = desc.methods.map(
        (one) => `- [${one.name}](${pageName(desc)}#${one.name.toLowerCase()}): ${summary(one)}`,
      )
      return `### [${desc.typeName.replace(/^pinfold\.(?:platform\.)?/, '')}](${pageName(desc)})\n\n${methods.join('\n')}\n`
    })
    return `## ${title}\n\n${lists.join('\n')}`
  })
  return `${notice}
# Reference

All methods of the API, generated from the contract in \`proto/\`. Each method is available over REST and over gRPC, on the
same port. The examples are real requests and answers, and a test repeats them. They show at most two elements of a list and
the beginning of a long text. \`/openapi.json\` and \`/openapi-v1.json\` describe every field. [Errors](../errors.md) have the
same form in all methods.

${sections.join('\n')}`
}

function factsOf(endpoint: Endpoint, comment: string): string[] {
  const { method, desc } = endpoint
  const paths = httpOf(desc).map(
    ({ httpMethod, path }) => `\`${httpMethod.toUpperCase()} ${path.replace(/=\*+\}/g, '}')}\``,
  )
  return [
    `- REST: ${paths.join(' or ') || 'none; gRPC only'}`,
    `- gRPC: \`${method.fullName}\``,
    ...(isTool(endpoint) ? [`- Tool for agents: \`${toolName(desc)}\``] : []),
    `- Permission: ${permissionText(method.access)}`,
    `- Request: ${requestText(desc)}`,
    ...(hasOption(desc, event) ? [`- Event: \`${getOption(desc, event).type}\``] : []),
    `- Errors: ${errorsOf(endpoint, comment)
      .map((name) => `\`${name}\``)
      .join(', ')}`,
  ]
}

function permissionText(access: Access): string {
  if (access.mode === 'open') return 'none; no token is checked'
  if (access.mode === 'everywhere') return 'operator only'
  const names = access.capabilities.map((number) => `\`${capabilityName(number)}\``).join(' and ')
  if (names === '') return 'any valid token'
  return access.mode === 'scoped' ? `${names} at \`${access.scope.join('.')}\`` : `${names} in any group`
}

function requestText({ input }: DescMethod): string {
  const names = input.fields.map((field) => {
    const isRequired = behaviourOf(field).isRequired || field === resourceFieldOf(input)
    return `\`${field.jsonName}\`${isRequired ? ' (required)' : ''}`
  })
  return names.join(', ') || 'empty'
}

/** Errors in the comment of a method, and errors that every method of its kind has. */
function errorsOf({ method: { access }, desc }: Endpoint, comment: string): string[] {
  const always = [
    ...(access.mode === 'open' ? [] : ['UNAUTHENTICATED']),
    ...(access.mode !== 'open' && access.capabilities.length > 0 ? ['PERMISSION_DENIED'] : []),
    ...(desc.input.fields.length > 0 ? ['INVALID_ARGUMENT'] : []),
  ]
  const known = [...Object.keys(codes), ...Object.keys(reasons), ...Object.keys(violationTypes)]
  const said = known.filter((name) => new RegExp(`\\b${name}\\b`).test(comment))
  return [...new Set([...always, ...said, 'UNAVAILABLE'])]
}

function exampleText({ handler }: Endpoint, example: Example | undefined): string {
  if (!handler) return 'Not available yet: `UNIMPLEMENTED`.\n'
  if (!example) return 'No example: the call needs a browser sign-in.\n'
  const { verb, path, body, status, response } = example
  const head = path === '' ? 'The request, over gRPC, as JSON' : `${verb} ${path}`
  const asked = [head, ...(body ? ['', JSON.stringify(body, null, 2)] : [])].join('\n')
  const answered = Object.keys(response).length === 0 ? '' : `\n\n${JSON.stringify(response, null, 2)}`
  const said = path === '' ? `OK${answered}` : `${status}${answered}`
  return `\`\`\`\n${asked}\n\`\`\`\n\n\`\`\`\n${said}\n\`\`\`\n`
}
