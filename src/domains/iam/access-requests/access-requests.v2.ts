import type { Handlers } from '#app.ts'
import type { GroupsService } from '#gen/pinfold/iam/v2/groups_pb.ts'
import { toPublicGroup } from '../groups/groups.model.ts'
import { groupToV2 } from '../groups/groups.v2.ts'
import * as access from './access-requests.service.ts'

export const groupAccess: Handlers<typeof GroupsService> = {
  async lookupGroup(call) {
    const group = groupToV2(toPublicGroup(await access.lookupGroup(call)))
    return { $typeName: 'pinfold.platform.iam.v2.LookupGroupResponse', group }
  },

  async requestGroupAccess(call, { groupUid }) {
    await access.requestAccess(call, groupUid)
    return { $typeName: 'pinfold.platform.iam.v2.RequestGroupAccessResponse' }
  },

  async checkEligibility(call) {
    return { $typeName: 'pinfold.platform.iam.v2.CheckEligibilityResponse', eligible: access.checkEligibility(call) }
  },
}
