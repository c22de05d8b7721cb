// What gates say of a manifest that is pulled, for the visitor and for the event of the pull.
import { gatesOf, type Outcome } from '#domains/policy/gates/gated-pulls.service.ts'
import type { RepoRef } from '#domains/registry/repo-ref.model.ts'
import { mayPush } from '../access.ts'
import { OciError } from '../errors.ts'
import type { Visit } from '../visit.ts'

/** Notes for the event what each gate says. Throws DENIED where one that is enforced refuses. */
export async function requireGates(visit: Visit, repo: RepoRef, digest: string): Promise<void> {
  // What is found in an image must not keep scanners from looking again.
  if (visit.call.caller.token?.scanner !== undefined) return
  const { outcomes, refusing } = await gatesOf(visit.call, repo, digest)
  if (outcomes.length === 0) return
  const judged = outcomes.map(({ gate, denied, failed }) => {
    return { uid: gate.uid, name: gate.name, enforced: gate.enforced, denied, ...(failed && { failed }) }
  })
  visit.judged = [...(visit.judged ?? []), ...judged]
  // Clients ask what a tag is before they push what is to take its place.
  const isLook = visit.req.method === 'HEAD' && mayPush(visit, repo.uid)
  if (refusing && !isLook) throw refusalOf(refusing, digest)
}

function refusalOf({ gate, reason, count }: Outcome, digest: string): OciError {
  const help = `pull another image, or ask for an exception: pinfold vulnerabilities gates except ${digest}`
  const message = `the gate ${gate.name} holds back ${digest}: ${reason}; ${help}`
  const detail = { digest, gate: gate.uid, name: gate.name, reason, ...(count > 0 && { count }) }
  return new OciError('DENIED', message, { detail })
}
