// Tabs of a repository for the policies that apply to it.
import { RepoFrame } from '../repos/repo-frame.tsx'
import { AdmissionPolicies } from './admission.tsx'
import { CooldownPolicies } from './cooldown.tsx'
import { Retention } from './retention.tsx'
import { Risks } from './risks.tsx'
import { TooYoungTags } from './too-young-tags.tsx'
import { DeniedTags } from './verdicts.tsx'

type Props = { names: readonly string[]; query: URLSearchParams }

export function RepoRetentionScreen({ names, query }: Props) {
  return (
    <RepoFrame names={names} view="promises">
      {({ item: { uid }, groups }) => <Retention at={{ uid, groups }} query={query} />}
    </RepoFrame>
  )
}

export function RepoCooldownScreen({ names, query }: Props) {
  return (
    <RepoFrame names={names} view="pulls">
      {({ item: { uid }, groups }) => (
        <>
          <CooldownPolicies at={{ uid, groups }} query={query} />
          <TooYoungTags names={names} repo={uid} />
        </>
      )}
    </RepoFrame>
  )
}

export function RepoAdmissionScreen({ names, query }: Props) {
  return (
    <RepoFrame names={names} view="gates">
      {({ item: { uid }, groups }) => (
        <>
          <AdmissionPolicies at={{ uid, groups }} query={query} />
          <DeniedTags names={names} repo={uid} />
        </>
      )}
    </RepoFrame>
  )
}

export function RepoRisksScreen({ names, query }: Props) {
  return (
    <RepoFrame names={names} view="risks">
      {({ item: { uid }, groups }) => <Risks at={{ uid, groups }} query={query} />}
    </RepoFrame>
  )
}
