// What a person does on pages, and sees there.
import { readFile } from "node:fs/promises";

/** The path of a tenant's pages. */
export const home = (tenant) => `/console/t/${tenant}`;

/** Signs in by the page. */
export async function signIn(page, token, path = "/console/") {
  await page.goto(path);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Pastes a text into the search box, and sends it. */
export async function paste(page, text) {
  const box = page.getByRole("searchbox", { name: "Search" });
  await box.fill(text);
  await box.press("Enter");
}

/** Waits for a text. */
export const sees = (page, text) => page.getByText(text).first().waitFor();

/** Waits for a heading. */
export const heading = (page, name) => page.getByRole("heading", { name }).first().waitFor();

/** Opens the page of a user. */
export async function open(page, tenant, userId) {
  await page.goto(`${home(tenant)}/users/${userId}`);
  await page.getByText(userId).first().waitFor();
}

/** Waits until the page says that something was done. */
export const done = (page) => page.getByRole("main").getByRole("status").first().waitFor();

/** Waits for the end of work that the server does. Without scripts, a person loads the page again. */
export async function settled(page, scripts, expected) {
  const refresh = page.getByRole("link", { name: "Refresh", exact: true });
  await expected.or(refresh).first().waitFor();
  while (!scripts && (await refresh.isVisible())) {
    await refresh.click();
    await expected.or(refresh).first().waitFor();
  }
  await expected.first().waitFor();
}

/** The text of the file that a link leads to. */
export async function download(page, link) {
  const [file] = await Promise.all([page.waitForEvent("download"), link.click()]);
  return readFile(await file.path(), "utf8");
}
