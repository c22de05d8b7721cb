// Where the server of a data folder is, as it says there, and whether that is the same place from here.
import { baseUrl } from '#config/basics.ts'
import { ownNetwork } from '#lib/net/own-network.ts'
import { CliError, exitCodes } from './command.ts'

export type LocalServer = { origin: string; ownMachine: boolean }

/** What the server has left there. */
export type LocalFacts = { origin: string | undefined; network: string | undefined; data: string }

/**
 * Nothing while no server is ready. What the folder says is an address of the server's own machine; from another network, such
 * as that of a container, somebody else may listen there and would get the operator's token. `named` is what was said of
 * where it is, if anything. Throws CliError where that is needed.
 */
export function localServer({ origin, network, data }: LocalFacts, named: string): LocalServer | undefined {
  if (!origin) return undefined
  const here = ownNetwork()
  if (!network || here === '' || network === here) return { origin, ownMachine: true }
  if (named !== '') return { origin: baseUrl(named, '--api'), ownMachine: false }
  const what = `the server of the data folder ${data} runs in another network than this command, as in a container`
  const next =
    'run the command where the server runs (docker exec CONTAINER pinfold …), or say by PINFOLD_API where it is from here'
  throw new CliError(exitCodes.unavailable, `${what}\n${next}`)
}
