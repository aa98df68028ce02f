// Users and requests that try to run scripts and to break the layout, in every field that takes them.
import { randomUUID } from "node:crypto";

/** Runs in a page if one of its characters is not escaped. */
export const ATTACK = `"'><script>globalThis.canary=1</script><img src=x onerror=globalThis.canary=1>`;

const OPEN_BRACKETS = "\u{2066}\u{202e}\u{200f}";

const fill = (length, text) => text + "x".repeat(length - text.length);

/** A user whose every field is an attack, and all that it leads to: events, notices, a merge. */
export async function hostileUser(api) {
  const attributes = {
    [ATTACK]: fill(4_000, ATTACK + OPEN_BRACKETS.repeat(3)),
    [fill(256, ATTACK)]: Array.from({ length: 10 }, (_, n) => fill(1_000, `${n}${ATTACK}`)),
    "__proto__": ATTACK,
    "constructor": true,
    "‮level": 7,
    "=cmd|' /C calc'!A0": "=1+1",
  };
  const user = await api.create(fill(256, ATTACK), [
    `social:github/${fill(250, ATTACK)}`,
    `handle:${"w".repeat(64)}`,
    `email:${"e".repeat(60)}@${"d".repeat(60)}.${"d".repeat(60)}.example.com`,
    `url:https://example.com/'onmouseover=globalThis.canary=1/${"u".repeat(900)}`,
    "handle:عبدالله",
  ], attributes);
  const headers = { "polynym-reason": encodeURIComponent(ATTACK) };
  const { userId } = user;
  await api.call("Registry.VerifyIdentity", { userId, identifier: { handle: "عبدالله" }, verified: true, verifiedBy: ATTACK }, headers);
  await api.call("Registry.DisableUser", { userId }, headers);
  await api.call("Registry.EnableUser", { userId }, headers);
  const notice = { subject: fill(256, ATTACK), body: fill(10_000, ATTACK), attributes: { [ATTACK]: { stringValue: ATTACK } } };
  await notify(api, userId, notice);
  const other = await api.create("\u05d0".repeat(256), [`social:github/${ATTACK}2`]);
  await api.call("Registry.MergeUsers", { primaryUserId: userId, secondaryUserId: other.userId }, headers);
  return api.get(userId);
}

async function notify(api, userId, notice) {
  await api.call("Inbox.SendNotice", { recipients: [{ userId }], notice, requestId: randomUUID() });
}
