// Commands that print a list of the API. Their options select the items and the order.
import { ApiError } from './api-client.ts'
import { type Answer, apiCommand } from './api-pages.ts'
import { type ApiReader, listPages, type Query, type Selected } from './api-reader.ts'
import { usageError } from './cli-error.ts'
import type { Command, OptionSpec, Options, Terminal } from './command.ts'

const usualLimit = 1000

export const limitOption: OptionSpec = {
  flags: '--limit <count>',
  summary: `Maximum number of items; default: ${usualLimit}`,
}

const orderOption: OptionSpec = {
  flags: '--order-by <field>',
  summary: 'Field to sort by, such as uid or "uid desc"; the error for an unknown field lists the fields',
}

const skipOption: OptionSpec = {
  flags: '--skip <count>',
  summary: 'Number of items to leave out at the start of the list; default: 0',
}

export function limitOf({ limit }: Options, usual: number = usualLimit): number {
  if (limit === undefined) return usual
  const count = Number(limit)
  if (Number.isInteger(count) && count > 0) return count
  throw usageError('--limit must be a whole number of at least 1')
}

/** Maximum of `skip` in the API, the largest 32-bit integer. */
const maxSkip = 2 ** 31 - 1

function skipOf({ skip = '0' }: Options): number {
  if (/^\d{1,10}$/.test(String(skip)) && Number(skip) <= maxSkip) return Number(skip)
  throw usageError(`--skip must be a whole number from 0 to ${maxSkip}`)
}

/** API for a command that prints a list. */
export type ListReader = ApiReader & {
  /** True if the user has chosen the order, so the command must not sort the items. */
  isOrdered: boolean
  /**
   * Returns the items that the options select. `query` may have a default order. `keep` filters items if the API has no such
   * filter; items that it rejects count neither as skipped nor for the limit. `first` is the first page of the API.
   */
  selected<T>(path: string, member: string, query: Query, keep?: (item: T) => boolean): Promise<Selected<T>>
}

type ListCommand = Omit<Command, 'run'> & {
  /** Maximum number of items without `--limit`. Default: 1000. */
  usual?: number
  check?(options: Options): void
  run(api: ListReader, options: Options, terminal: Terminal): Promise<Answer | undefined>
}

/** Creates a command that prints a list of the API. Adds the options `--limit`, `--order-by` and `--skip`, before the output format. */
export function listCommand(
  { usual = usualLimit, check, run, ...command }: ListCommand,
  caller?: readonly OptionSpec[],
) {
  const isOutput = ({ flags }: OptionSpec) => flags.includes('--output')
  const limit = usual === Number.POSITIVE_INFINITY ? 'all' : String(usual)
  return apiCommand(
    {
      ...command,
      options: [
        ...command.options.filter((option) => !isOutput(option)),
        { ...limitOption, summary: `Maximum number of items; default: ${limit}` },
        orderOption,
        skipOption,
        ...command.options.filter(isOutput),
      ],
      check(options) {
        limitOf(options, usual)
        skipOf(options)
        check?.(options)
      },
      run: (api, options, terminal) => run(listReader(api, options, usual), options, terminal),
    },
    caller,
  )
}

function listReader(api: ApiReader, options: Options, usual: number): ListReader {
  const { orderBy } = options
  return {
    ...api,
    isOrdered: orderBy !== undefined,
    async selected<T>(path: string, member: string, query: Query, keep?: (item: T) => boolean) {
      const ordered = orderBy === undefined ? query : { ...query, order_by: String(orderBy) }
      const selection = { limit: limitOf(options, usual), skip: skipOf(options), ...(keep && { keep }) }
      return await listPages<T>((page) => api.call('GET', page), { path, member, query: ordered, ...selection }).catch(
        (error: unknown) => {
          throw ofOption(error)
        },
      )
    },
  }
}

/** Converts an error about the query parameter of `--order-by` to a usage error. */
function ofOption(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  const violation = error.violations.find(({ field }) => field === 'order_by')
  return violation ? usageError(`--order-by ${violation.description}`, error) : error
}
