//! The attacks: callers that take more than their share until the measurement is over.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use polynym_proto::v1;
use tokio::task::JoinSet;
use tonic_health::pb::HealthCheckRequest;

use super::{Scene, USERS, change};
use crate::access::shares::{Connection, HEALTH_WATCH};
use crate::calls::{handle, user};
use crate::http2::raw::{HEADERS, Raw};

const BATCH: &str = "/polynym.v1.DirectoryService/BatchGetUsers";

/// Repeats a call on 16 connections until the measurement is over.
async fn repeat<F>(scene: Arc<Scene>, loops: usize, call: impl Fn(Arc<Connection>) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = JoinSet::new();
    for _ in 0..loops {
        let connection = Arc::new(scene.connection(0).await);
        running.spawn(call(connection));
    }
    running.join_all().await;
}

pub async fn import(connection: &Connection, lines: std::ops::Range<i64>) {
    let options =
        v1::import_users_request::Options { tenant: "default".to_owned(), ..Default::default() };
    let first = v1::ImportUsersRequest { options: Some(options), ..Default::default() };
    let lines = lines.map(|line| {
        let user = user(&format!("User {line}"), vec![handle(&format!("u{line}"))]);
        v1::ImportUsersRequest { line, user: Some(user), ..Default::default() }
    });
    let request = connection.request(stream::iter(std::iter::once(first).chain(lines)));
    let Ok(answer) = connection.client.admin.clone().import_users(request).await else { return };
    let mut answers = answer.into_inner();
    while let Some(Ok(_)) = answers.next().await {}
}

pub async fn health_watches(scene: Arc<Scene>) {
    while !scene.is_over() {
        let mut held: Vec<_> = (0..129).map(|_| Raw::greeted(&scene.server)).collect();
        for raw in &mut held {
            (0..8).for_each(|n| raw.ask(2 * n + 1, HEALTH_WATCH, &HealthCheckRequest::default()));
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}

pub async fn unread(scene: Arc<Scene>) {
    let request = v1::BatchGetUsersRequest {
        tenant: "default".to_owned(),
        user_ids: vec![scene.user_id.clone(); 1_000],
        ..Default::default()
    };
    let header = format!("Bearer {}", scene.greedy[0]);
    while !scene.is_over() {
        let mut held: Vec<_> = (0..24).map(|_| Raw::with_window(&scene.server, 0)).collect();
        for raw in &mut held {
            (0..32).for_each(|n| {
                raw.ask_with(2 * n + 1, BATCH, &[("authorization", &header)], &request);
            });
            raw.until(HEADERS);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

pub async fn notices(scene: Arc<Scene>) {
    let recipients = (1..=1_000).map(|n| {
        let recipient = v1::recipient::Recipient::Identifier(handle(&format!("u{n}")));
        v1::Recipient { recipient: Some(recipient) }
    });
    let content = v1::NoticeContent {
        subject: "News".to_owned(),
        body: "x".repeat(16 << 10),
        ..Default::default()
    };
    let request = v1::SendNoticeRequest {
        tenant: "default".to_owned(),
        recipients: recipients.collect(),
        notice: Some(content),
        ..Default::default()
    };
    let over = scene.clone();
    repeat(scene, 16, move |connection| {
        let (request, scene) = (request.clone(), over.clone());
        async move {
            while !scene.is_over() {
                let mut inbox = connection.client.inbox.clone();
                let _ = inbox.send_notice(connection.request(request.clone())).await;
            }
        }
    })
    .await;
}

pub async fn backups(scene: Arc<Scene>) {
    let over = scene.clone();
    repeat(scene, 8, move |connection| {
        let scene = over.clone();
        async move {
            while !scene.is_over() {
                let _ = tokio::time::timeout(Duration::from_millis(100), connection.backup()).await;
            }
        }
    })
    .await;
}

pub async fn watches(scene: Arc<Scene>) {
    let mut held = Vec::new();
    for greedy in [0, 1] {
        for _ in 0..62 {
            let connection = scene.connection(greedy).await;
            for _ in 0..8 {
                let tenant = "empty".to_owned();
                let request = connection.request(v1::WatchRequest { tenant, ..Default::default() });
                held.push(connection.client.directory.clone().watch(request).await.unwrap());
            }
        }
    }
    std::future::pending::<()>().await;
}

pub async fn idle(scene: Arc<Scene>) {
    let connection = scene.connection(0).await;
    let imports = (connection.import().await, connection.import().await);
    let searches = (connection.duplicates().await, connection.backup().await);
    std::future::pending::<()>().await;
    drop((imports, searches));
}

pub async fn export(scene: Arc<Scene>) {
    let connection = scene.connection(0).await;
    let unread = connection.export().await;
    // Changes that free pages.
    let over = scene.clone();
    repeat(scene, 8, move |connection| {
        let scene = over.clone();
        async move {
            let mut n = 0;
            while !scene.is_over() {
                n += 1;
                change(&connection, &scene.user_id, n).await;
            }
        }
    })
    .await;
    drop(unread);
}

pub async fn imports(scene: Arc<Scene>) {
    let connection = scene.connection(0).await;
    while !scene.is_over() {
        let range = 1..USERS + 1;
        tokio::join!(import(&connection, range.clone()), import(&connection, range));
    }
}

pub async fn searches(scene: Arc<Scene>) {
    let over = scene.clone();
    repeat(scene, 16, move |connection| {
        let scene = over.clone();
        async move {
            while !scene.is_over() {
                let request = v1::SearchUsersRequest {
                    tenant: "default".to_owned(),
                    filter: "NOT display_name != \"nobody\"".to_owned(),
                    ..Default::default()
                };
                let mut directory = connection.client.directory.clone();
                let _ = directory.search_users(connection.request(request)).await;
            }
        }
    })
    .await;
}
