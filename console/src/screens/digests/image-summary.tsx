// Summary of an image: verdict of the admission policies, vulnerabilities, signatures, platforms, size and retention.
import type { ComponentChildren } from 'preact'
import { paths } from '../../app/paths.ts'
import { here } from '../../app/route.ts'
import { can } from '../../app/session.ts'
import { ask } from '../../data/api.ts'
import type { ImageSummary, Kept, Verdict } from '../../data/types.ts'
import { ScanResult } from '../../ui/findings.tsx'
import { type Loaded, useLoad } from '../../ui/load.ts'
import { verdictBadge } from '../../ui/scan-words.ts'
import { Badge, bytes, Time } from '../../ui/text.tsx'
import { digestWords } from '../../words/digests.ts'
import { numbers, words } from '../../words.ts'
import { verdictsOn } from '../rules/verdicts.tsx'
import { platformText } from './platforms.ts'

type Props = { repo: string; digest: string; image: ImageSummary }

/** Parts load independently, so a slow one delays no other. */
export function Summary({ repo, digest, image }: Props) {
  const kept = useLoad(`promise ${repo} ${digest}`, (signal) =>
    ask<Kept>('GET', `/registry/v2/repos/${repo}/promises/${digest}`, { signal }),
  )
  const tab = (name: string) => paths.with(here(), { tab: name, page: undefined })
  const { platforms, size, signatures, recentPulls, vulnerabilities, coverage } = image
  return (
    <dl class="summary">
      {can('repo.check_policies', repo) && (
        <Fact name={words.nouns.policies}>
          <PolicyVerdict repo={repo} digest={digest} href={tab('retention')} />
        </Fact>
      )}
      <Fact name={words.vulnerabilities} hint={coverage?.state === 'COMPARED' ? digestWords.allScanned : ''}>
        <ScanResult counts={vulnerabilities} coverage={coverage} href={tab('vulnerabilities')} />
      </Fact>
      <Fact name={digestWords.signature} hint={signatures > 0 ? digestWords.notVerified : ''}>
        {signatures > 0 ? (
          <a href={tab('referrers')}>{digestWords.signatureCount(signatures)}</a>
        ) : (
          <span class="dim">{digestWords.noSignature}</span>
        )}
      </Fact>
      <Fact name={digestWords.platforms}>
        {platforms.length === 0 ? (
          <span class="dim">{digestWords.noPlatform}</span>
        ) : (
          <bdi title={platforms.join(', ')}>{platformText(platforms)}</bdi>
        )}
      </Fact>
      <Fact name={words.size} hint={platforms.length > 1 ? digestWords.sizeOfOne : ''}>
        {size ? bytes(Number(size)) : <span class="dim">{words.unknown}</span>}
      </Fact>
      {recentPulls && (
        <Fact name={digestWords.pullsOf30Days}>
          <a href={tab('pulls')}>{numbers(Number(recentPulls))}</a>
        </Fact>
      )}
      <Fact name={digestWords.keptShort}>
        <RetainedUntil of={kept} href={tab('retention')} />
      </Fact>
    </dl>
  )
}

function Fact({ name, hint = '', children }: { name: string; hint?: string; children: ComponentChildren }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
      {hint !== '' && <dd class="hint">{hint}</dd>}
    </div>
  )
}

/** Strictest verdict of all policies, with the name of its policy. */
function PolicyVerdict({ repo, digest, href }: { repo: string; digest: string; href: string }) {
  const read = useLoad(`gates on ${repo} ${digest}`, (signal) => verdictsOn(repo, { digest }, signal))
  if (read.data === undefined) return <span class="dim">{read.error === undefined ? '…' : words.unknown}</span>
  const strictest = read.data.toSorted((a, b) => strictness(b) - strictness(a))[0]
  if (!strictest) return <span class="dim">{digestWords.noPolicies}</span>
  const { kind, text } = verdictBadge(strictest)
  const isDenied = strictest.result === 'RESULT_DENIED'
  return (
    <a class="verdict" href={href}>
      <Badge kind={kind}>{text}</Badge>
      <span class="hint">
        <bdi>{isDenied ? strictest.policyName : digestWords.policiesChecked(read.data.length)}</bdi>
      </span>
    </a>
  )
}

function strictness(verdict: Verdict): number {
  const order = ['good', 'plain', 'warn', 'bad']
  return order.indexOf(verdictBadge(verdict).kind) + (verdict.result === 'RESULT_DENIED' ? 1 : 0)
}

function RetainedUntil({ of, href }: { of: Loaded<Kept>; href: string }) {
  if (of.data === undefined) return <span class="dim">{of.error === undefined ? '…' : '–'}</span>
  // The API omits an enum that has its zero value.
  const { reason = 'REASON_UNSPECIFIED', until } = of.data
  if (reason === 'REASON_UNSPECIFIED') return <span class="dim">{digestWords.notKept}</span>
  return <a href={href}>{until ? <Time at={until} /> : digestWords.keptForever}</a>
}
